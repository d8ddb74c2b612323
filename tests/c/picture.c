/* Pictures of flows: bytes and a file, a point and a line at known pixels, and every kind of bad input, which writes nothing.
   Twin: tests/fortran/picture.f90. */
#include <unistd.h>

#include "check.h"

enum { H = WFMM_MEMORY_HOST, WIDTH = 200, HEIGHT = 100 };
static uint8_t rgba[WIDTH * HEIGHT * 4 + 4];

static const uint8_t *pixel(int i, int j) { return rgba + 4 * (j * WIDTH + i); }

static int is(int i, int j, int r, int g, int b) {
    const uint8_t *p = pixel(i, j);
    return abs(p[0] - r) <= 1 && abs(p[1] - g) <= 1 && abs(p[2] - b) <= 1 && p[3] == 255;
}

/* 25 pixels a unit at the target */
static wfmm_camera ahead(void) {
    wfmm_camera c;
    OK(wfmm_camera_init(&c, sizeof c));
    CHECK(c.struct_size == sizeof c && c.kinds == 31 && c.fit == 1);
    c.eye[0] = 0, c.eye[1] = -2, c.eye[2] = 0;
    c.fit = 0, c.field_of_view = 90, c.opacity = 50;
    return c;
}

static void points_and_lines_are_where_they_should(wfmm_flow *f) {
    const double tracers[6] = {0.5, 0, 0.26, 0.5, -4, 0.26}, ends[6] = {-1, 0, 0, 1, 0, 0}, one[1] = {1};
    const int32_t pair[2] = {0, 1};
    wfmm_camera c = ahead();
    OK(wfmm_flow_set_tracers_f64(f, 2, tracers, H));
    OK(wfmm_flow_set_filaments_f64(f, 2, ends, 1, 2, pair, one, one, H));
    memset(rgba, 77, sizeof rgba);
    OK(wfmm_flow_picture(f, &c, WIDTH, HEIGHT, rgba, NULL));
    CHECK(is(112, 43, 110, 230, 170) && is(116, 43, 10, 15, 26));
    CHECK(rgba[4 * WIDTH * HEIGHT] == 77); /* the tail is not written */
    /* alone, not fainter than what is closer */
    c.kinds = 1 << WFMM_KIND_FILAMENTS;
    OK(wfmm_flow_picture(f, &c, WIDTH, HEIGHT, rgba, NULL));
    CHECK(is(80, 49, 120, 190, 255) && is(120, 50, 120, 190, 255) && is(60, 50, 10, 15, 26) && is(112, 43, 10, 15, 26));
    c.kinds = 1 << WFMM_KIND_DUST;
    OK(wfmm_flow_picture(f, &c, WIDTH, HEIGHT, rgba, NULL));
    CHECK(is(112, 43, 10, 15, 26) && is(80, 49, 10, 15, 26));
    /* no camera: everything is seen */
    OK(wfmm_flow_picture(f, NULL, WIDTH, HEIGHT, rgba, NULL));
    int drawn = 0;
    for (int k = 0; k < WIDTH * HEIGHT; k++) drawn += !is(k % WIDTH, k / WIDTH, 10, 15, 26);
    CHECK(drawn > 50);
    /* the speed asks for an evaluation */
    c.kinds = 31, c.color = WFMM_COLOR_SPEED;
    OK(wfmm_flow_picture(f, &c, WIDTH, HEIGHT, rgba, NULL));
}

static void a_file_is_written(wfmm_flow *f) {
    static const uint8_t signature[8] = {0x89, 'P', 'N', 'G', '\r', '\n', 0x1a, '\n'};
    char path[64];
    uint8_t head[24] = {0};
    snprintf(path, sizeof path, "/tmp/wakefmm-%ld.png", (long)getpid());
    OK(wfmm_flow_picture(f, NULL, WIDTH, HEIGHT, NULL, path));
    FILE *file = fopen(path, "rb");
    CHECK(file && fread(head, 1, sizeof head, file) == sizeof head);
    if (file) fclose(file);
    CHECK(!memcmp(head, signature, 8) && head[19] == WIDTH && head[23] == HEIGHT);
    remove(path);
}

static void bad_input(wfmm_flow *f) {
    wfmm_camera c = ahead();
    memset(rgba, 77, sizeof rgba);
    EXPECT(wfmm_flow_picture(NULL, &c, WIDTH, HEIGHT, rgba, NULL), WFMM_ERR_NULL, "flow");
    EXPECT(wfmm_flow_picture(f, &c, WIDTH, HEIGHT, NULL, NULL), WFMM_ERR_NULL, "rgba and png_path");
    EXPECT(wfmm_flow_picture(f, &c, 0, HEIGHT, rgba, NULL), WFMM_ERR_VALUE, "width = 0");
    EXPECT(wfmm_flow_picture(f, &c, WIDTH, -3, rgba, NULL), WFMM_ERR_VALUE, "height = -3");
    EXPECT(wfmm_flow_picture(f, &c, WIDTH, 1 << 30, rgba, NULL), WFMM_ERR_VALUE, "height");
    EXPECT(wfmm_flow_picture(f, &c, WIDTH, HEIGHT, rgba, ""), WFMM_ERR_FILE, "png_path is empty");
    EXPECT(wfmm_flow_picture(f, &c, WIDTH, HEIGHT, rgba, "/no/such/folder/a.png"), WFMM_ERR_FILE, "/no/such/folder");
    c.projection = 7;
    EXPECT(wfmm_flow_picture(f, &c, WIDTH, HEIGHT, rgba, NULL), WFMM_ERR_CONSTANT, "projection = 7");
    c = ahead(), c.blending = -1;
    EXPECT(wfmm_flow_picture(f, &c, WIDTH, HEIGHT, rgba, NULL), WFMM_ERR_CONSTANT, "blending = -1");
    c = ahead(), c.opacity = NAN;
    EXPECT(wfmm_flow_picture(f, &c, WIDTH, HEIGHT, rgba, NULL), WFMM_ERR_NOT_FINITE, "opacity");
    c = ahead(), c.target[1] = -2;
    EXPECT(wfmm_flow_picture(f, &c, WIDTH, HEIGHT, rgba, NULL), WFMM_ERR_VALUE, "same point");
    c = ahead(), c.struct_size = 0;
    EXPECT(wfmm_flow_picture(f, &c, WIDTH, HEIGHT, rgba, NULL), WFMM_ERR_STRUCT_SIZE, "camera");
    EXPECT(wfmm_camera_init(NULL, sizeof c), WFMM_ERR_NULL, "camera");
    EXPECT(wfmm_camera_init(&c, 3), WFMM_ERR_STRUCT_SIZE, "3");
    CHECK(rgba[0] == 77 && rgba[4 * WIDTH * HEIGHT - 1] == 77);
}

int main(void) {
    wfmm_flow *f = NULL;
    OK(wfmm_flow_create(NULL, NULL, NULL, &f));
    OK(wfmm_flow_picture(f, NULL, WIDTH, HEIGHT, rgba, NULL)); /* nothing is there */
    CHECK(is(0, 0, 10, 15, 26) && is(WIDTH - 1, HEIGHT - 1, 10, 15, 26));
    points_and_lines_are_where_they_should(f);
    a_file_is_written(f);
    bad_input(f);
    OK(wfmm_flow_destroy(&f));
    return finish("picture");
}
