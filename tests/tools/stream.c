/* Memory bandwidth without Python: read, copy, scale and triad as in STREAM, and a copy that goes around the caches.
   stream BYTES SECONDS prints the best byte/s of each. BYTES is the working set; a sixteenth of it is timed at once, so
   that a sample is short and its data has left the caches. Data is written before it is timed. */
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#ifdef __AVX__
#include <immintrin.h>
#endif

enum { READ, COPY, SCALE, TRIAD, STREAMED, KERNELS, SLICES = 16 };
static const char *names[] = {"read", "copy", "scale", "triad", "streamed copy"};

static double work(int kernel, double *x, size_t n) {
    size_t parts = kernel == READ ? 1 : kernel == TRIAD ? 3 : 2, each = n / parts;
    double sum = 0;
#pragma omp parallel reduction(+ : sum)
    {
        size_t id = omp_get_thread_num(), all = omp_get_num_threads();
        size_t from = each * id / all & ~(size_t)7, to = id + 1 == all ? each : each * (id + 1) / all & ~(size_t)7;
        double *a = x + from, *b = x + each + from, *c = x + 2 * each + from;
        size_t count = to - from;
        if (kernel == READ) {
            double s = 0;
#pragma omp simd reduction(+ : s)
            for (size_t i = 0; i < count; i++) s += a[i];
            sum += s;
        } else if (kernel == COPY) {
            memcpy(b, a, count * sizeof *a);
        } else if (kernel == SCALE) {
            for (size_t i = 0; i < count; i++) b[i] = 0.5 * a[i];
        } else if (kernel == TRIAD) {
            for (size_t i = 0; i < count; i++) c[i] = a[i] + 0.5 * b[i];
        }
#ifdef __AVX__
        else {
            size_t i = 0;
            for (; i < count && ((size_t)(b + i) & 31); i++) b[i] = a[i];
            for (; i + 4 <= count; i += 4) _mm256_stream_pd(b + i, _mm256_loadu_pd(a + i));
            for (; i < count; i++) b[i] = a[i];
            _mm_sfence();
        }
#endif
    }
    return sum;
}

int main(int argc, char **argv) {
    size_t n = strtoull(argv[1], 0, 10) / sizeof(double) / SLICES;
    double seconds = atof(argv[2]), best[KERNELS] = {0}, sink = 0;
    double *x = malloc(n * SLICES * sizeof *x);
    if (argc != 3 || !x || !n) return 1;
#pragma omp parallel for
    for (size_t i = 0; i < n * SLICES; i++) x[i] = 1;
#ifdef __AVX__
    int kernels = KERNELS;
#else
    int kernels = STREAMED;
#endif
    for (int kernel = 0; kernel < kernels; kernel++) {
        double end = omp_get_wtime() + seconds / kernels;
        for (int slice = 0; omp_get_wtime() < end; slice = (slice + 1) % SLICES) {
            double start = omp_get_wtime();
            sink += work(kernel, x + slice * n, n);
            double rate = (kernel == TRIAD ? n / 3 * 3 : n) * sizeof *x / (omp_get_wtime() - start);
            if (rate > best[kernel]) best[kernel] = rate;
        }
    }
    for (int kernel = 0; kernel < kernels; kernel++) printf("%s\t%.6e\n", names[kernel], best[kernel]);
    return sink < 0;
}
