/* Writing fields of Darwin's structures at their offsets (darwin_abi.h). */
#ifndef RECORD_H
#define RECORD_H
#include <stdint.h>
#include <string.h>

static inline void put16(uint8_t *record, int at, uint16_t value) { memcpy(record + at, &value, sizeof value); }
static inline void put32(uint8_t *record, int at, uint32_t value) { memcpy(record + at, &value, sizeof value); }
static inline void put64(uint8_t *record, int at, uint64_t value) { memcpy(record + at, &value, sizeof value); }

#endif
