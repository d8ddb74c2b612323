//! Builds a driver whose device is the CPU: every kernels/*.cu, and those of tests alone beside this file, compiled as C++ against
//! the emulation beside this file, behind tests/fake_driver/cuda.c. Runs a test of the calling program again under it, in a process of its own.

#[path = "translate.rs"]
mod translate;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, OnceLock};
use std::time::SystemTime;
use translate::{Kernel, translate};

const CHILD: &str = "EMULATED_IMAGES";

/// Runs `body` with the emulated GPU, in a child of this process that runs the test `name` again; what it printed.
pub fn with_gpu(name: &str, settings: &[(&str, &str)], body: impl FnOnce()) -> String {
    if std::env::var_os(CHILD).is_some() {
        body();
        return String::new();
    }
    let mut child = Command::new(std::env::current_exe().unwrap());
    child.args([name, "--exact", "--nocapture", "--test-threads=1"]);
    child.env("LD_LIBRARY_PATH", driver()).env(CHILD, env!("WAKEFMM_IMAGES")).env("WAKEFMM_LOG", "warn");
    child.envs(settings.iter().copied());
    let child = child.output().unwrap();
    let (text, errors) = (String::from_utf8_lossy(&child.stdout), String::from_utf8_lossy(&child.stderr));
    assert!(child.status.success(), "{name}: {}\n{text}\n{errors}", child.status);
    assert!(text.contains("1 passed"), "{name} did not run: {text}");
    text.into_owned()
}

/// The folder of the driver, which is built where something is newer than it.
fn driver() -> &'static Path {
    static DRIVER: OnceLock<PathBuf> = OnceLock::new();
    DRIVER.get_or_init(|| {
        let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("emulated-gpu");
        fs::create_dir_all(&folder).unwrap();
        let library = folder.join("libcuda.so.1");
        if modified(&library) <= sources().iter().map(|path| modified(path)).max().unwrap() {
            build(&folder, &library);
        }
        folder
    })
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn modified(path: &Path) -> SystemTime {
    fs::metadata(path).and_then(|data| data.modified()).unwrap_or(SystemTime::UNIX_EPOCH)
}

fn files(folder: &str) -> Vec<PathBuf> {
    let entries = fs::read_dir(root().join(folder)).unwrap().map(|entry| entry.unwrap().path());
    entries.filter(|path| path.is_file()).collect()
}

fn sources() -> Vec<PathBuf> {
    ["kernels", "tests/emulated_gpu", "tests/fake_driver"].iter().flat_map(|folder| files(folder)).collect()
}

fn compiler(variable: &str, name: &str) -> Command {
    Command::new(std::env::var(variable).unwrap_or_else(|_| name.into()))
}

fn must(mut command: Command) -> Vec<u8> {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
    output.stdout
}

/// Every unit and the driver to objects, some at a time, and all to one library.
fn build(folder: &Path, library: &Path) {
    let mut units: Vec<PathBuf> = ["kernels", "tests/emulated_gpu"].iter().flat_map(|folder| files(folder)).collect();
    units.retain(|path| path.extension().is_some_and(|extension| extension == "cu"));
    // The largest first: then no thread is left with one at the end.
    units.sort_by_key(|path| fs::metadata(path).unwrap().len());
    let (queue, objects) = (Mutex::new(units), Mutex::new(Vec::new()));
    let jobs = std::thread::available_parallelism().map_or(2, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..jobs {
            scope.spawn(|| {
                loop {
                    let Some(unit) = queue.lock().unwrap().pop() else { break };
                    let object = compile(&unit, folder);
                    objects.lock().unwrap().push(object);
                }
            });
        }
    });
    let strict = ["-O3", "-march=native", "-fPIC", "-Wall", "-Wextra", "-Werror", "-c"];
    let mut objects = objects.into_inner().unwrap();
    let parts = [
        ("CC", "cc", "-DEMULATED", "tests/fake_driver/cuda.c"),
        ("CXX", "c++", "-fvisibility=hidden", "tests/emulated_gpu/threads.cpp"),
        ("CXX", "c++", "-fvisibility=hidden", "tests/emulated_gpu/shared.cpp"),
        ("CXX", "c++", "-fvisibility=hidden", "tests/emulated_gpu/driver.cpp"),
        ("CXX", "c++", "-fvisibility=hidden", "tests/emulated_gpu/trees.cpp"),
        ("CXX", "c++", "-fvisibility=hidden", "tests/emulated_gpu/own_sources.cpp"),
    ];
    for (variable, name, flag, source) in parts {
        let object = folder.join(source.replace('/', "-")).with_extension("o");
        let mut command = compiler(variable, name);
        command.args(strict).arg(flag).arg("-I").arg(root().join("tests/emulated_gpu"));
        command.arg("-isystem").arg(root().join("kernels")).arg(root().join(source)).arg("-o").arg(&object);
        must(command);
        objects.push(object);
    }
    // Another test program may build at the same time: whoever is last leaves a whole file.
    let unfinished = folder.join(format!("{}.so", std::process::id()));
    let mut command = compiler("CXX", "c++");
    command.args(["-shared", "-Wl,-soname,libcuda.so.1", "-Wl,--no-undefined", "-o"]).arg(&unfinished).args(objects);
    must(command);
    fs::rename(unfinished, library).unwrap();
}

/// One unit: preprocessed, its kernels registered by name, compiled. A namespace of its own keeps templates of units apart.
fn compile(unit: &Path, folder: &Path) -> PathBuf {
    let name = unit.file_stem().unwrap().to_str().unwrap();
    let flags = ["-std=c++17", "-O1", "-fPIC", "-fvisibility=hidden", "-ffp-contract=off", "-march=native", "-w", "-I"];
    let command = |action: &str, input: &Path| {
        let mut command = compiler("CXX", "c++");
        command.args(flags).arg(root().join("tests/emulated_gpu")).arg("-I").arg(root().join("kernels"));
        command.args([action, "-x", "c++"]).arg(input);
        command
    };
    let start = folder.join(format!("{name}.cpp"));
    let before = format!("before_{name}.h");
    let before = if root().join("tests/emulated_gpu").join(&before).is_file() {
        format!("#include \"{before}\"")
    } else {
        String::new()
    };
    let unit = unit.display();
    let text = format!("#include <cuda_runtime.h>\nnamespace unit_{name} {{\n{before}\n#include \"{unit}\"\n}}\n");
    fs::write(&start, text).unwrap();
    let text = String::from_utf8(must(command("-E", &start))).unwrap();
    let (mut text, kernels) = translate(&text);
    for Kernel { name: kernel, cluster } in kernels {
        text += &format!(
            "\nstatic emulated::Kernel kernel_{kernel}(\"{name}\", \"{kernel}\", emulated::binder(unit_{name}::{kernel}), {cluster});"
        );
    }
    let (whole, object) = (folder.join(format!("{name}.ii")), folder.join(format!("{name}.o")));
    if object.is_file() && fs::read_to_string(&whole).is_ok_and(|old| old == text) {
        return object; // nothing of this unit has changed
    }
    let _ = fs::remove_file(&object);
    fs::write(&whole, text).unwrap();
    let mut command = command("-c", &whole);
    command.args(["-fpreprocessed", "-o"]).arg(&object);
    must(command);
    object
}
