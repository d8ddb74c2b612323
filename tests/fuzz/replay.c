/* Runs every file of a folder through `calls.c`: the kept corpus as an ordinary test. Enters: the folder. Leaves: 0, or the
   abort() of the first program that breaks something. */
#include "calls.h"
#include <dirent.h>
#include <stdio.h>
#include <string.h>

int main(int argc, char **argv) {
    static uint8_t bytes[4096];
    char path[4096];
    int files = 0;
    DIR *folder = argc > 1 ? opendir(argv[1]) : NULL;
    if (!folder) return puts("replay FOLDER"), 1;
    for (struct dirent *entry; (entry = readdir(folder));) {
        if (entry->d_name[0] == '.') continue;
        snprintf(path, sizeof path, "%s/%s", argv[1], entry->d_name);
        FILE *file = fopen(path, "rb");
        if (!file) return printf("%s cannot be read\n", path), 1;
        const size_t size = fread(bytes, 1, sizeof bytes, file);
        fclose(file);
        wakefmm_fuzz_one(bytes, size);
        ++files;
    }
    closedir(folder);
    printf("corpus: %d programs of C calls, nothing broken\n", files);
    return files == 0;
}
