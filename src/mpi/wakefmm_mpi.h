/* libwakefmm_mpi: sessions of libwakefmm over the processes of an MPI communicator. A thin layer, built with the user's mpicc:
   libwakefmm itself links no MPI. Link with -lwakefmm_mpi -lwakefmm (pkg-config: wakefmm-mpi). */
#ifndef WAKEFMM_MPI_H
#define WAKEFMM_MPI_H

#include <mpi.h>
#include "wakefmm.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Makes a session that spans the processes of `communicator`, which is duplicated; all of them make it together.
   `options` may be NULL: defaults. End it with wfmm_session_destroy on every process, before MPI_Finalize. Later sessions of the
   communicator use the duplicate again. MPI_Comm_free of `communicator` frees its duplicates, MPI_Finalize those of sessions that
   have not ended by then.
   MPI must be initialized with MPI_THREAD_FUNNELED at least (MPI_Init_thread) and not be finalized; with FUNNELED the calls
   come from the thread that initialized it. Its functions are called on the thread that calls the library.
   Errors: as of wfmm_session_create_distributed; WFMM_ERR_STATE: MPI is not initialized, finalized or has a thread level too low;
   WFMM_ERR_NULL: MPI_COMM_NULL; WFMM_ERR_COMMUNICATION: an MPI function failed. wfmm_last_error says more. */
wfmm_status wfmm_mpi_session_create(MPI_Comm communicator, const wfmm_session_options *options, wfmm_session **out);

/* The functions of a duplicate of `communicator`, for one call of wfmm_session_create_distributed; and for a communicator of Fortran.
   All processes call it together. */
wfmm_status wfmm_mpi_communicator(MPI_Comm communicator, wfmm_communicator *out);
wfmm_status wfmm_mpi_communicator_f(MPI_Fint communicator, wfmm_communicator *out);

#ifdef __cplusplus
}
#endif
#endif
