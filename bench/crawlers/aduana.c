/* Drives Aduana's C library by the commands that base.py lists: a crawl's pages into its page database and best-first
 * scheduler, and requests out of it. Built and explained by aduana.py. Only what is called of the library is declared.
 *
 *     cc -O2 -o driver aduana.c LIBADUANA.so -lm && ./driver FOLDER [limits]
 */
#define _GNU_SOURCE
#include <malloc.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

typedef struct CrawledPage CrawledPage;
typedef struct PageDB PageDB;
typedef struct BFScheduler BFScheduler;
typedef struct {
    char **urls;
    size_t n_urls;
} PageRequest;

CrawledPage *crawled_page_new(const char *url);
int crawled_page_add_link(CrawledPage *page, const char *url, float score);
void crawled_page_delete(CrawledPage *page);
int page_db_new(PageDB **db, const char *path);
int page_db_add(PageDB *db, const CrawledPage *page, void *info);
int bf_scheduler_new(BFScheduler **scheduler, PageDB *db, const char *path);
int bf_scheduler_add(BFScheduler *scheduler, const CrawledPage *page);
int bf_scheduler_request(BFScheduler *scheduler, size_t count, PageRequest **request);
int bf_scheduler_set_max_domain_crawl_rate(BFScheduler *scheduler, float soft, float hard);
void page_request_delete(PageRequest *request);

static double seconds(clockid_t clock) {
    struct timespec now;
    clock_gettime(clock, &now);
    return now.tv_sec + now.tv_nsec * 1e-9;
}

static void check(int code, const char *what) {
    if (code) {
        fprintf(stderr, "%s: error %d\n", what, code);
        exit(1);
    }
}

static char *text_of(size_t bytes) {
    char *text = malloc(bytes + 1);
    if (!text || fread(text, 1, bytes, stdin) != bytes)
        check(1, "reading pages");
    text[bytes] = 0;
    return text;
}

static int by_length(const void *one, const void *two) {
    double a = *(const double *)one, b = *(const double *)two;
    return (a > b) - (a < b);
}

/* The median, the 99th percentile and the longest of some calls, to end an object of JSON. */
static void tell_calls(double *took, size_t count) {
    size_t place = count * 99 / 100;
    took[count] = 0;
    qsort(took, count, sizeof *took, by_length);
    printf("\"median\": %.9g, \"p99\": %.9g, \"slowest\": %.9g}\n", took[count / 2],
           took[count && place >= count ? count - 1 : place], count ? took[count - 1] : 0.0);
}

/* Pages as lines, an empty one behind each: built before the time begins, as a spider would have built them. */
static size_t pages_of(char *text, CrawledPage **pages, size_t count, size_t *links) {
    size_t found = 0;
    char *line = text, *end;
    int fresh = 1;
    for (; (end = strchr(line, '\n')); line = end + 1) {
        *end = 0;
        if (end == line)
            fresh = 1;
        else if (fresh) {
            if (found == count)
                check(1, "more pages than said");
            pages[found++] = crawled_page_new(line);
            fresh = 0;
        } else {
            check(crawled_page_add_link(pages[found - 1], line, 0), "crawled_page_add_link");
            *links += 1;
        }
    }
    return found;
}

int main(int argc, char **argv) {
    char path[4096], command[256], mode[16];
    size_t bytes, count, size;
    PageDB *db;
    BFScheduler *scheduler;
    if (argc < 2)
        check(2, "usage: driver FOLDER [limits]");
    snprintf(path, sizeof path, "%s/pages", argv[1]);
    double began = seconds(CLOCK_MONOTONIC);
    check(page_db_new(&db, path), "page_db_new");
    check(bf_scheduler_new(&scheduler, db, NULL), "bf_scheduler_new");
    if (argc > 2) /* what its Python always sets; without, C sets none */
        check(bf_scheduler_set_max_domain_crawl_rate(scheduler, 0.25, 100), "limits");
    printf("{\"open\": %.9g}\n", seconds(CLOCK_MONOTONIC) - began);
    fflush(stdout);
    while (fgets(command, sizeof command, stdin)) {
        if (sscanf(command, "seed %zu", &bytes) == 1) {
            char *text = text_of(bytes), *line = text, *end;
            CrawledPage *seeds = crawled_page_new("_seed_0"); /* as its Frontera backend adds them */
            for (; (end = strchr(line, '\n')); line = end + 1) {
                *end = 0;
                check(crawled_page_add_link(seeds, line, 1), "crawled_page_add_link");
            }
            check(bf_scheduler_add(scheduler, seeds), "bf_scheduler_add");
            crawled_page_delete(seeds);
            free(text);
            printf("{}\n");
        } else if (sscanf(command, "take %15s %zu %zu", mode, &count, &bytes) == 3) {
            char *text = text_of(bytes);
            CrawledPage **pages = malloc((count + 1) * sizeof *pages);
            double *took = malloc((count + 1) * sizeof *took);
            size_t links = 0, found = pages_of(text, pages, count, &links);
            free(text);
            int store_only = !strcmp(mode, "store");
            double cpu = seconds(CLOCK_PROCESS_CPUTIME_ID), before = seconds(CLOCK_MONOTONIC), now = before;
            began = before;
            for (size_t i = 0; i < found; i++) {
                if (store_only)
                    check(page_db_add(db, pages[i], NULL), "page_db_add");
                else
                    check(bf_scheduler_add(scheduler, pages[i]), "bf_scheduler_add");
                now = seconds(CLOCK_MONOTONIC);
                took[i] = now - before;
                before = now;
            }
            cpu = seconds(CLOCK_PROCESS_CPUTIME_ID) - cpu;
            printf("{\"pages\": %zu, \"links\": %zu, \"cpu\": %.9g, \"wall\": %.9g, ", found, links, cpu, now - began);
            tell_calls(took, found);
            for (size_t i = 0; i < found; i++)
                crawled_page_delete(pages[i]);
            free(pages);
            free(took);
        } else if (sscanf(command, "next %15s %zu %zu", mode, &count, &size) == 3) {
            double *took = malloc((count + 1) * sizeof *took), cpu = 0, wall = 0;
            size_t urls = 0, missing = 0;
            for (size_t i = 0; i < count; i++) {
                PageRequest *request;
                double cpu_began = seconds(CLOCK_PROCESS_CPUTIME_ID);
                began = seconds(CLOCK_MONOTONIC);
                check(bf_scheduler_request(scheduler, size, &request), "bf_scheduler_request");
                took[i] = seconds(CLOCK_MONOTONIC) - began;
                cpu += seconds(CLOCK_PROCESS_CPUTIME_ID) - cpu_began;
                wall += took[i];
                urls += request->n_urls;
                missing += request->n_urls < size;
                page_request_delete(request);
            }
            printf("{\"urls\": %zu, \"cpu\": %.9g, \"wall\": %.9g, \"short\": %zu, \"batches\": %zu, \"answer\": 0, ",
                   urls, cpu, wall, missing, count);
            tell_calls(took, count);
            free(took);
        } else if (!strncmp(command, "settle", 6)) {
            malloc_trim(0);
            printf("{}\n");
        } else
            break;
        fflush(stdout);
    }
    _Exit(0); /* nothing is synced, and closing would only unmap */
}
