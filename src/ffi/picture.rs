//! Pictures of flows.

use std::ffi::c_char;

use crate::error::{Error, Result, WFMM_ERR_NULL};
use crate::flow::picture::camera::{Camera, wfmm_camera};
use crate::flow::picture::write_png;
use crate::plan::arrays::ArrayMut;
use crate::session::Session;

use super::boundary::{Arrays, api, enough_memory};
use super::flow::{output_array, path_of};
use super::flow_cell::with_flow;
use super::{structs, wfmm_flow};

api! {
    /// Fills `camera` with the defaults. `size` is `sizeof *camera`.
    /// Thread rule: any thread. Errors: WFMM_ERR_NULL, WFMM_ERR_STRUCT_SIZE.
    /// Example: `wfmm_camera c; wfmm_camera_init(&c, sizeof c); c.color = WFMM_COLOR_SPEED;`
    fn wfmm_camera_init(camera: *mut wfmm_camera, size: usize) {
        unsafe { structs::write("camera", camera, size, wfmm_camera::default()) }
    }

    /// Draws the flow as a camera sees it: segments as lines that hide what is behind them, tracers, dust and particles
    /// as points, whose number gives the opacity. `camera` may be NULL: defaults, which show everything from the side.
    /// `width`, `height`: in pixels, 1 to 32768. `rgba`: `[height][width][4]`, rows from the top, host memory; `png_path`:
    /// NUL-terminated name of a PNG file to write, replaced when the new one is whole. One of both may be NULL. On a distributed
    /// session every rank calls it with the same camera and gets the picture of all ranks' elements.
    /// Thread rule: one thread at a time. Errors, which write nothing: WFMM_ERR_NULL (both outputs), _HANDLE, _BUSY,
    /// _VALUE (width, height, camera), _CONSTANT, _NOT_FINITE, _STRUCT_SIZE, _TOO_NEW, _FILE; WFMM_ERR_HOST_MEMORY, _DEVICE_MEMORY,
    /// _DEVICE_LOST; with WFMM_COLOR_SPEED those of an evaluation.
    /// Example: `wfmm_flow_picture(f, NULL, 1280, 720, NULL, "wake.png");`
    fn wfmm_flow_picture(
        flow: *mut wfmm_flow, #[optional] camera: *const wfmm_camera, width: i32, height: i32,
        #[optional] #[shape(4, width, height)] rgba: *mut u8, #[optional] png_path: *const c_char,
    ) {
        with_flow(flow, |flow| {
            let session = flow.session().clone();
            let (camera, rgba, path) = session.together("wfmm_flow_picture", || {
                if rgba.is_null() && png_path.is_null() {
                    return nothing_to_write();
                }
                let camera = Camera::checked(&unsafe { structs::read("camera", camera) }?, width, height)?;
                let len = 4 * camera.width * camera.height;
                let rgba = if rgba.is_null() { None } else { Some(unsafe { bytes_of(&session, rgba, len) }?) };
                let path =
                    if png_path.is_null() { None } else { Some(unsafe { path_of("png_path", png_path) }?) };
                enough_memory().map(|()| (camera, rgba, path))
            })?;
            let rgba = match rgba {
                Some(rgba) if path.is_none() && session.communicator().is_none() => return flow.picture_to(&camera, rgba),
                rgba => rgba,
            };
            let picture = flow.picture(&camera)?;
            session.together("wfmm_flow_picture", || {
                path.map_or(Ok(()), |path| write_png(&path, camera.width, camera.height, &picture))
            })?;
            if let Some(rgba) = rgba {
                rgba.copy_from_slice(&picture);
            }
            Ok(())
        })
    }
}

/// The caller's bytes, in host memory.
///
/// # Safety
/// As `Arrays::outputs`.
unsafe fn bytes_of<'a>(session: &Session, rgba: *mut u8, len: usize) -> Result<&'a mut [u8]> {
    match unsafe { output_array(&Arrays::on_host(session), "rgba", rgba, len) }? {
        ArrayMut::Host(bytes) => Ok(bytes),
        ArrayMut::Device { .. } => unreachable!("looked for in host memory"),
    }
}

fn nothing_to_write<R>() -> Result<R> {
    Error::fail(WFMM_ERR_NULL, "rgba and png_path are NULL; one of them is needed")
}
