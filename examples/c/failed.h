/* What the examples of flows do with a status. */
#pragma once
#include <stdio.h>
#include <wakefmm.h>

/* Prints what went wrong; whether something did. */
static int failed(wfmm_status status) {
    char message[512] = "";
    if (status == WFMM_OK) return 0;
    wfmm_last_error(message, sizeof message, NULL);
    fprintf(stderr, "%s: %s\n", wfmm_status_name(status), message);
    return 1;
}
