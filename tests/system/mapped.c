/*
 * mapped.c - files that are written through a mapping only, and compared.
 *
 *   mapped write DIR SEED   leaves FILES files, all of whose pages are dirty
 *   mapped check DIR SEED   are they what "write" has made with that seed?
 */
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define FILES 3000u		/* more than are sent at a time */
#define FILE_WORDS (1u << 11)	/* of 8 bytes */

static uint64_t word_of(uint64_t seed, unsigned file, uint64_t i)
{
	return (seed * FILES + file) * UINT64_C(0x9e3779b97f4a7c15) ^
	       i * UINT64_C(0xbf58476d1ce4e5b9);
}

static uint64_t *map(const char *dir, unsigned file, bool write)
{
	char path[4096];
	void *words;
	int fd;

	snprintf(path, sizeof(path), "%s/mapped-%u", dir, file);
	fd = open(path, write ? O_RDWR | O_CREAT : O_RDONLY, 0600);
	if (fd < 0 || (write && ftruncate(fd, FILE_WORDS * 8))) {
		perror(path);
		exit(2);
	}
	words = mmap(NULL, FILE_WORDS * 8,
		     write ? PROT_READ | PROT_WRITE : PROT_READ, MAP_SHARED,
		     fd, 0);
	if (words == MAP_FAILED) {
		perror(path);
		exit(2);
	}
	close(fd);
	return words;
}

int main(int argc, char **argv)
{
	bool write = argc == 4 && !strcmp(argv[1], "write");
	uint64_t seed, i, *words, wrong = 0;
	unsigned file;

	if (argc != 4)
		return 2;
	seed = strtoull(argv[3], NULL, 10);
	for (file = 0; file < FILES; file++) {
		words = map(argv[2], file, write);
		for (i = 0; i < FILE_WORDS; i++) {
			if (write)
				words[i] = word_of(seed, file, i);
			else if (words[i] != word_of(seed, file, i))
				wrong++;
		}
		munmap(words, FILE_WORDS * 8);
	}
	if (wrong)
		printf("%llu of %u words are wrong\n",
		       (unsigned long long)wrong, FILES * FILE_WORDS);
	return wrong != 0;
}
