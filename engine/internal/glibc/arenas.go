//go:build cgo && linux

package glibc

/*
#include <stdlib.h>
#include <stdio.h>
#include <string.h>
#ifdef __GLIBC__
#include <malloc.h>

static void one_arena(void) { mallopt(M_ARENA_MAX, 1); }

static int count_arenas(void) {
	char *text = NULL, *at;
	size_t size = 0;
	int n = 0;
	FILE *f = open_memstream(&text, &size);
	if (f == NULL) return -1;
	malloc_info(0, f);
	fclose(f);
	for (at = text; (at = strstr(at, "<heap nr=")) != NULL; at++) n++;
	free(text);
	return n;
}
#else
static void one_arena(void) {}
static int count_arenas(void) { return -1; }
#endif
*/
import "C"

import "os"

// OneArena keeps the allocator from making more arenas, for the process and from now on. MALLOC_ARENA_MAX of the environment goes before it. It does
// nothing where there is no glibc.
func OneArena() {
	if os.Getenv("MALLOC_ARENA_MAX") == "" {
		C.one_arena()
	}
}

// arenas is how many there are; below zero: unknown.
func arenas() int { return int(C.count_arenas()) }

// take has the allocator give memory to the calling thread, and give takes it back.
func take(bytes int) (give func()) {
	p := C.malloc(C.size_t(bytes))
	return func() { C.free(p) }
}
