// What tests/fake_driver/cuda.c asks for where kernels are to run: a kernel by its name, launches and clearings, now or when a
// recorded graph is replayed. Streams need nothing: what is queued first is done first, and at once.
#include "trees.h"
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace emulated {

static Kernel *kernels;

Kernel::Kernel(const char *unit, const char *name, std::function<Body(void **)> bind, unsigned cluster)
    : unit(unit), name(name), bind(std::move(bind)), cluster(cluster), next(kernels) { kernels = this; }

typedef std::vector<std::function<void()>> Graph;

// Kernels of several host threads take turns.
static std::mutex turn;
// What this thread records; null: it does not.
static thread_local std::unique_ptr<Graph> recording;

const Kernel *find_kernel(const char *unit, const char *name) {
    for (const Kernel *k = kernels; k; k = k->next) if (!strcmp(k->unit, unit) && !strcmp(k->name, name)) return k;
    return nullptr;
}

static void queue(std::function<void()> work) {
    if (recording) { recording->push_back(std::move(work)); return; }
    const std::lock_guard<std::mutex> mine(turn);
    work();
}

} // namespace emulated

using namespace emulated;

extern "C" {

// The unit whose fat binary this is, by comparing it with the files in the folder EMULATED_IMAGES; null: none. An image is compared
// once: it is part of the library and stays.
const char *emulated_unit(const void *image) {
    static std::mutex one;
    static std::map<const void *, const char *> known;
    const std::lock_guard<std::mutex> mine(one);
    const auto found = known.find(image);
    if (found != known.end()) return found->second;
    const char *folder = getenv("EMULATED_IMAGES"), *before = "";
    for (const Kernel *k = kernels; k; k = k->next) {
        if (!strcmp(k->unit, before)) continue;
        before = k->unit;
        std::ifstream file(std::string(folder ? folder : ".") + "/" + k->unit + ".fatbin", std::ios::binary | std::ios::ate);
        const size_t size = file ? (size_t)file.tellg() : 0, header = 16;
        // The header says how long the rest is: where it differs the image may be shorter.
        char begin[header];
        if (size <= header || !file.seekg(0).read(begin, header) || memcmp(begin, image, header)) continue;
        std::vector<char> rest(size - header);
        if (!file.read(rest.data(), rest.size()) || memcmp(rest.data(), (const char *)image + header, rest.size())) continue;
        return known[image] = k->unit;
    }
    return nullptr;
}

// `major`: of the compute capability; only from 9 on there are clusters.
const void *emulated_kernel(const char *unit, const char *name, int major) {
    const Kernel *k = find_kernel(unit, name);
    return k && k->cluster > 1 && major < 9 ? nullptr : k;
}

int emulated_launch(const void *kernel, const unsigned *grid, const unsigned *block, unsigned shared, void **arguments) {
    const Kernel *k = (const Kernel *)kernel;
    if (block[1] != 1 || block[2] != 1 || block[0] > 1024 || grid[1] > 65535 || grid[2] > 65535 || grid[0] % k->cluster) return 1;
    const Body body = k->bind(arguments), checks[] = {comparison(*k, arguments), check_of_own_sources(*k, arguments)};
    const Index size{grid[0], grid[1], grid[2]};
    const unsigned threads = block[0];
    queue([=] {
        run(*k, body, size, threads, shared);
        for (const Body &check : checks) if (check) check();
    });
    return 0;
}

void emulated_clear(uint64_t at, unsigned char value, size_t bytes) {
    queue([=] { memset((void *)(uintptr_t)at, value, bytes); });
}

void emulated_record(void) { recording = std::make_unique<Graph>(); }
void *emulated_recorded(void) { return recording.release(); }
void emulated_forget(void *graph) { delete (Graph *)graph; }
void emulated_replay(const void *graph) {
    const std::lock_guard<std::mutex> mine(turn);
    for (const auto &work : *(const Graph *)graph) work();
}

} // extern "C"
