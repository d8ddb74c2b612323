//! The driver's entry points that crate cust names, each as a trampoline of ours.
//!
//! Enters: calls of `cu…` from cust. Leaves: the same call in the driver that `loader` found, or
//! CUDA_ERROR_NOT_INITIALIZED while there is none. So nothing of CUDA is needed when the library is linked or loaded.
//!
//! A checked trampoline also replaces a status that cust's enum does not list by CUDA_ERROR_UNKNOWN and keeps the
//! original in `LAST_UNKNOWN`: the code of a newer driver would be an invalid value of a Rust enum, undefined behaviour.
//! It calls with the stack deeper by a word, right only where every argument fits in registers; the others just jump,
//! and this crate calls those through declarations of its own that return an integer.
//!
//! All symbols are hidden: a host that links the real driver never meets them.

use std::arch::global_asm;
use std::sync::atomic::{AtomicPtr, AtomicU32};

/// The statuses of `cust::sys::cudaError_enum`, first and last of each range.
const KNOWN: [(u32, u32); 14] = [
    (0, 8),
    (34, 34),
    (100, 102),
    (200, 202),
    (205, 224),
    (300, 304),
    (400, 401),
    (500, 500),
    (600, 600),
    (700, 705),
    (708, 720),
    (800, 809),
    (900, 911),
    (999, 999),
];

const fn listed_bits() -> [u32; 32] {
    let mut bits = [0; 32];
    let mut range = 0;
    while range < KNOWN.len() {
        let mut code = KNOWN[range].0;
        while code <= KNOWN[range].1 {
            bits[(code / 32) as usize] |= 1 << (code % 32);
            code += 1;
        }
        range += 1;
    }
    bits
}

/// `KNOWN`, a bit a status; read by the trampolines only.
static KNOWN_BITS: [u32; 32] = listed_bits();

/// The last status that a trampoline replaced, 0 if none.
pub(super) static LAST_UNKNOWN: AtomicU32 = AtomicU32::new(0);

unsafe extern "C" {
    /// First of the slots, in the order of `NAMES`; each holds the address that its trampoline jumps to.
    static wakefmm_cuda_slots: AtomicPtr<libc::c_void>;
}

/// The slots of all trampolines, in the order of `NAMES`.
pub(super) fn slots() -> &'static [AtomicPtr<libc::c_void>] {
    // SAFETY: the assembly below lays down exactly one pointer-sized, aligned, writable word for each name.
    unsafe { std::slice::from_raw_parts(&raw const wakefmm_cuda_slots, NAMES.len()) }
}

macro_rules! slot {
    ($name:ident) => {
        concat!(
            ".pushsection .data.wakefmm_cuda,\"aw\",@progbits\nwakefmm_slot_",
            stringify!($name),
            ": .quad wakefmm_cuda_absent\n.popsection\n.globl ",
            stringify!($name),
            "\n.hidden ",
            stringify!($name),
            "\n.type ",
            stringify!($name),
            ",@function\n",
            stringify!($name),
            ":\n"
        )
    };
}

/// Calls the driver, then sees to the status.
#[cfg(target_arch = "x86_64")]
macro_rules! call {
    ($name:ident) => {
        concat!(
            "sub rsp, 8\ncall qword ptr [rip + wakefmm_slot_",
            stringify!($name),
            "]\nadd rsp, 8\njmp wakefmm_cuda_check\n"
        )
    };
}
#[cfg(target_arch = "aarch64")]
macro_rules! call {
    ($name:ident) => {
        concat!(
            "stp x29, x30, [sp, #-16]!\nmov x29, sp\nadrp x16, wakefmm_slot_",
            stringify!($name),
            "\nldr x16, [x16, :lo12:wakefmm_slot_",
            stringify!($name),
            "]\nblr x16\nldp x29, x30, [sp], #16\nb wakefmm_cuda_check\n"
        )
    };
}

/// Goes on in the driver.
#[cfg(target_arch = "x86_64")]
macro_rules! jump {
    ($name:ident) => {
        concat!("jmp qword ptr [rip + wakefmm_slot_", stringify!($name), "]\n")
    };
}
#[cfg(target_arch = "aarch64")]
macro_rules! jump {
    ($name:ident) => {
        concat!(
            "adrp x16, wakefmm_slot_",
            stringify!($name),
            "\nldr x16, [x16, :lo12:wakefmm_slot_",
            stringify!($name),
            "]\nbr x16\n"
        )
    };
}

/// `wakefmm_cuda_absent`: no driver, CUDA_ERROR_NOT_INITIALIZED. `wakefmm_cuda_check`: replaces an unlisted status.
#[cfg(target_arch = "x86_64")]
macro_rules! shared {
    () => {
        "wakefmm_cuda_absent: mov eax, 3
        ret
        wakefmm_cuda_check: cmp eax, 1023
        ja 2f
        lea rcx, [rip + {listed}]
        bt dword ptr [rcx], eax
        jnc 2f
        ret
        2: mov dword ptr [rip + {unlisted}], eax
        mov eax, 999
        ret"
    };
}
#[cfg(target_arch = "aarch64")]
macro_rules! shared {
    () => {
        "wakefmm_cuda_absent: mov w0, #3
        ret
        wakefmm_cuda_check: cmp w0, #1023
        b.hi 2f
        adrp x9, {listed}
        add x9, x9, :lo12:{listed}
        lsr w10, w0, #5
        ldr w10, [x9, w10, uxtw #2]
        lsr w10, w10, w0
        tbz w10, #0, 2f
        ret
        2: adrp x9, {unlisted}
        str w0, [x9, :lo12:{unlisted}]
        mov w0, #999
        ret"
    };
}

macro_rules! trampolines {
    (checked { $($checked:ident)* } jumped { $($jumped:ident)* }) => {
        /// Names of all trampolines, in the order of their slots.
        pub(super) const NAMES: &[&str] = &[$(stringify!($checked),)* $(stringify!($jumped),)*];

        global_asm!(
            ".pushsection .data.wakefmm_cuda,\"aw\",@progbits",
            ".p2align 3",
            ".globl wakefmm_cuda_slots",
            ".hidden wakefmm_cuda_slots",
            "wakefmm_cuda_slots:",
            ".popsection",
            ".pushsection .text.wakefmm_cuda,\"ax\",@progbits",
            shared!(),
            $(concat!(slot!($checked), call!($checked)),)*
            $(concat!(slot!($jumped), jump!($jumped)),)*
            ".popsection",
            listed = sym KNOWN_BITS,
            unlisted = sym LAST_UNKNOWN,
        );
    };
}

trampolines! {
    checked {
        cuGetErrorString cuGetErrorName cuInit cuDriverGetVersion cuDeviceGet cuDeviceGetCount cuDeviceGetName
        cuDeviceGetUuid cuDeviceGetUuid_v2 cuDeviceGetLuid cuDeviceTotalMem_v2 cuDeviceGetTexture1DLinearMaxWidth
        cuDeviceGetAttribute cuDeviceGetNvSciSyncAttributes cuDeviceSetMemPool cuDeviceGetMemPool
        cuDeviceGetDefaultMemPool cuFlushGPUDirectRDMAWrites cuDeviceGetProperties cuDeviceComputeCapability
        cuDevicePrimaryCtxRetain cuDevicePrimaryCtxRelease_v2 cuDevicePrimaryCtxSetFlags_v2 cuDevicePrimaryCtxGetState
        cuDevicePrimaryCtxReset_v2 cuDeviceGetExecAffinitySupport cuCtxCreate_v2 cuCtxCreate_v3 cuCtxDestroy_v2
        cuCtxPushCurrent_v2 cuCtxPopCurrent_v2 cuCtxSetCurrent cuCtxGetCurrent cuCtxGetDevice cuCtxGetFlags
        cuCtxSynchronize cuCtxSetLimit cuCtxGetLimit cuCtxGetCacheConfig cuCtxSetCacheConfig cuCtxGetSharedMemConfig
        cuCtxSetSharedMemConfig cuCtxGetApiVersion cuCtxGetStreamPriorityRange cuCtxResetPersistingL2Cache
        cuCtxGetExecAffinity cuCtxAttach cuCtxDetach cuModuleLoad cuModuleLoadData cuModuleLoadDataEx
        cuModuleLoadFatBinary cuModuleUnload cuModuleGetFunction cuModuleGetGlobal_v2 cuModuleGetTexRef
        cuModuleGetSurfRef cuLinkCreate_v2 cuLinkAddFile_v2 cuLinkComplete cuLinkDestroy cuMemGetInfo_v2 cuMemAlloc_v2
        cuMemAllocPitch_v2 cuMemFree_v2 cuMemGetAddressRange_v2 cuMemAllocHost_v2 cuMemFreeHost cuMemHostAlloc
        cuMemHostGetDevicePointer_v2 cuMemHostGetFlags cuMemAllocManaged cuDeviceGetByPCIBusId cuDeviceGetPCIBusId
        cuIpcGetEventHandle cuIpcGetMemHandle cuIpcCloseMemHandle cuMemHostRegister_v2 cuMemHostUnregister cuMemcpy
        cuMemcpyPeer cuMemcpyHtoD_v2 cuMemcpyDtoH_v2 cuMemcpyDtoD_v2 cuMemcpyDtoA_v2 cuMemcpyAtoD_v2 cuMemcpyHtoA_v2
        cuMemcpyAtoH_v2 cuMemcpyAtoA_v2 cuMemcpy2D_v2 cuMemcpy2DUnaligned_v2 cuMemcpy3D_v2 cuMemcpy3DPeer
        cuMemcpyAsync cuMemcpyPeerAsync cuMemcpyHtoDAsync_v2 cuMemcpyDtoHAsync_v2 cuMemcpyDtoDAsync_v2
        cuMemcpyHtoAAsync_v2 cuMemcpyAtoHAsync_v2 cuMemcpy2DAsync_v2 cuMemcpy3DAsync_v2 cuMemcpy3DPeerAsync
        cuMemsetD8_v2 cuMemsetD16_v2 cuMemsetD32_v2 cuMemsetD2D8_v2 cuMemsetD2D16_v2 cuMemsetD2D32_v2 cuMemsetD8Async
        cuMemsetD16Async cuMemsetD32Async cuMemsetD2D8Async cuMemsetD2D16Async cuMemsetD2D32Async cuArrayCreate_v2
        cuArrayGetDescriptor_v2 cuArrayGetSparseProperties cuMipmappedArrayGetSparseProperties cuArrayGetPlane
        cuArrayDestroy cuArray3DCreate_v2 cuArray3DGetDescriptor_v2 cuMipmappedArrayCreate cuMipmappedArrayGetLevel
        cuMipmappedArrayDestroy cuMemAddressReserve cuMemAddressFree cuMemCreate cuMemRelease cuMemMap
        cuMemMapArrayAsync cuMemUnmap cuMemSetAccess cuMemGetAccess cuMemExportToShareableHandle
        cuMemImportFromShareableHandle cuMemGetAllocationGranularity cuMemGetAllocationPropertiesFromHandle
        cuMemRetainAllocationHandle cuMemFreeAsync cuMemAllocAsync cuMemPoolTrimTo cuMemPoolSetAttribute
        cuMemPoolGetAttribute cuMemPoolSetAccess cuMemPoolGetAccess cuMemPoolCreate cuMemPoolDestroy
        cuMemAllocFromPoolAsync cuMemPoolExportToShareableHandle cuMemPoolImportFromShareableHandle
        cuMemPoolExportPointer cuMemPoolImportPointer cuPointerGetAttribute cuMemPrefetchAsync cuMemAdvise
        cuMemRangeGetAttribute cuMemRangeGetAttributes cuPointerSetAttribute cuPointerGetAttributes cuStreamCreate
        cuStreamCreateWithPriority cuStreamGetPriority cuStreamGetFlags cuStreamGetCtx cuStreamWaitEvent
        cuStreamAddCallback cuStreamBeginCapture_v2 cuThreadExchangeStreamCaptureMode cuStreamEndCapture
        cuStreamIsCapturing cuStreamGetCaptureInfo cuStreamGetCaptureInfo_v2 cuStreamUpdateCaptureDependencies
        cuStreamAttachMemAsync cuStreamQuery cuStreamSynchronize cuStreamDestroy_v2 cuStreamCopyAttributes
        cuStreamGetAttribute cuStreamSetAttribute cuEventCreate cuEventRecord cuEventRecordWithFlags cuEventQuery
        cuEventSynchronize cuEventDestroy_v2 cuEventElapsedTime cuImportExternalMemory cuExternalMemoryGetMappedBuffer
        cuExternalMemoryGetMappedMipmappedArray cuDestroyExternalMemory cuImportExternalSemaphore
        cuSignalExternalSemaphoresAsync cuWaitExternalSemaphoresAsync cuDestroyExternalSemaphore cuStreamWaitValue32
        cuStreamWaitValue64 cuStreamWriteValue32 cuStreamWriteValue64 cuStreamBatchMemOp cuFuncGetAttribute
        cuFuncSetAttribute cuFuncSetCacheConfig cuFuncSetSharedMemConfig cuFuncGetModule
        cuLaunchCooperativeKernelMultiDevice cuLaunchHostFunc cuFuncSetBlockShape cuFuncSetSharedSize cuParamSetSize
        cuParamSeti cuParamSetf cuParamSetv cuLaunch cuLaunchGrid cuLaunchGridAsync cuParamSetTexRef cuGraphCreate
        cuGraphAddKernelNode cuGraphKernelNodeGetParams cuGraphKernelNodeSetParams cuGraphAddMemcpyNode
        cuGraphMemcpyNodeGetParams cuGraphMemcpyNodeSetParams cuGraphAddMemsetNode cuGraphMemsetNodeGetParams
        cuGraphMemsetNodeSetParams cuGraphAddHostNode cuGraphHostNodeGetParams cuGraphHostNodeSetParams
        cuGraphAddChildGraphNode cuGraphChildGraphNodeGetGraph cuGraphAddEmptyNode cuGraphAddEventRecordNode
        cuGraphEventRecordNodeGetEvent cuGraphEventRecordNodeSetEvent cuGraphAddEventWaitNode
        cuGraphEventWaitNodeGetEvent cuGraphEventWaitNodeSetEvent cuGraphAddExternalSemaphoresSignalNode
        cuGraphExternalSemaphoresSignalNodeGetParams cuGraphExternalSemaphoresSignalNodeSetParams
        cuGraphAddExternalSemaphoresWaitNode cuGraphExternalSemaphoresWaitNodeGetParams
        cuGraphExternalSemaphoresWaitNodeSetParams cuGraphAddMemAllocNode cuGraphMemAllocNodeGetParams
        cuGraphAddMemFreeNode cuGraphMemFreeNodeGetParams cuDeviceGraphMemTrim cuDeviceGetGraphMemAttribute
        cuDeviceSetGraphMemAttribute cuGraphClone cuGraphNodeFindInClone cuGraphNodeGetType cuGraphGetNodes
        cuGraphGetRootNodes cuGraphGetEdges cuGraphNodeGetDependencies cuGraphNodeGetDependentNodes
        cuGraphAddDependencies cuGraphRemoveDependencies cuGraphDestroyNode cuGraphInstantiate_v2
        cuGraphInstantiateWithFlags cuGraphExecKernelNodeSetParams cuGraphExecMemcpyNodeSetParams
        cuGraphExecMemsetNodeSetParams cuGraphExecHostNodeSetParams cuGraphExecChildGraphNodeSetParams
        cuGraphExecEventRecordNodeSetEvent cuGraphExecEventWaitNodeSetEvent
        cuGraphExecExternalSemaphoresSignalNodeSetParams cuGraphExecExternalSemaphoresWaitNodeSetParams cuGraphUpload
        cuGraphLaunch cuGraphExecDestroy cuGraphDestroy cuGraphExecUpdate cuGraphKernelNodeCopyAttributes
        cuGraphKernelNodeGetAttribute cuGraphKernelNodeSetAttribute cuGraphDebugDotPrint cuUserObjectCreate
        cuUserObjectRetain cuUserObjectRelease cuGraphRetainUserObject cuGraphReleaseUserObject
        cuOccupancyMaxActiveBlocksPerMultiprocessor cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags
        cuOccupancyMaxPotentialBlockSize cuOccupancyAvailableDynamicSMemPerBlock cuTexRefSetArray
        cuTexRefSetMipmappedArray cuTexRefSetAddress_v2 cuTexRefSetAddress2D_v3 cuTexRefSetFormat
        cuTexRefSetAddressMode cuTexRefSetFilterMode cuTexRefSetMipmapFilterMode cuTexRefSetMipmapLevelBias
        cuTexRefSetMipmapLevelClamp cuTexRefSetMaxAnisotropy cuTexRefSetBorderColor cuTexRefSetFlags
        cuTexRefGetAddress_v2 cuTexRefGetArray cuTexRefGetMipmappedArray cuTexRefGetAddressMode cuTexRefGetFilterMode
        cuTexRefGetFormat cuTexRefGetMipmapFilterMode cuTexRefGetMipmapLevelBias cuTexRefGetMipmapLevelClamp
        cuTexRefGetMaxAnisotropy cuTexRefGetBorderColor cuTexRefGetFlags cuTexRefCreate cuTexRefDestroy
        cuSurfRefSetArray cuSurfRefGetArray cuTexObjectCreate cuTexObjectDestroy cuTexObjectGetResourceDesc
        cuTexObjectGetTextureDesc cuTexObjectGetResourceViewDesc cuSurfObjectCreate cuSurfObjectDestroy
        cuSurfObjectGetResourceDesc cuDeviceCanAccessPeer cuCtxEnablePeerAccess cuCtxDisablePeerAccess
        cuDeviceGetP2PAttribute cuGraphicsUnregisterResource cuGraphicsSubResourceGetMappedArray
        cuGraphicsResourceGetMappedMipmappedArray cuGraphicsResourceGetMappedPointer_v2
        cuGraphicsResourceSetMapFlags_v2 cuGraphicsMapResources cuGraphicsUnmapResources cuGetProcAddress
        cuGetExportTable cuProfilerInitialize cuProfilerStart cuProfilerStop
    }
    jumped {
        cuLinkAddData_v2 cuLaunchKernel cuLaunchCooperativeKernel cuOccupancyMaxPotentialBlockSizeWithFlags
        cuIpcOpenEventHandle cuIpcOpenMemHandle_v2
    }
}
