/* A plugin for QEMU (9.1 or later) that counts the guest's instructions between two marks.
 *
 * A mark is a no-operation that real code never contains: `nopl IMM(%rax)`, the bytes 0F 1F 80 and a 32-bit
 * immediate. IMM = 0x4c420000 + ID starts the section ID (0 to 63), 0x4c430000 + ID ends it. In Rust:
 *
 *     core::arch::asm!(".byte 0x0f, 0x1f, 0x80", ".long 0x4c420001", options(nomem, nostack, preserves_flags));
 *
 * At each end one line of JSON goes to the file of the option out=FILE:
 *
 *     {"id":1,"vcpu":0,"user":1234,"kernel":0}
 *
 * Instructions above the middle of the address space are the kernel's. A section is counted on the processor
 * that it starts on, so give the guest one processor. The start mark itself counts, the end mark does not.
 *
 * Debian ships no header for plugins, so the few declarations that are needed stand here.
 */
#include <inttypes.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#define EXPORTED __attribute__((visibility("default")))
#define MOST_IDS 64
#define MOST_VCPUS 64
#define MARK_BYTES 7
#define START_MARK 0x4c42
#define END_MARK 0x4c43

typedef uint64_t plugin_id;
struct qemu_plugin_tb;
struct qemu_plugin_insn;
struct qemu_plugin_scoreboard;
typedef struct {
    struct qemu_plugin_scoreboard *score;
    size_t offset;
} counter;
enum { NO_REGISTERS = 0 };
enum { ADD_TO_COUNTER = 0 };

extern void qemu_plugin_register_vcpu_tb_trans_cb(plugin_id, void (*)(plugin_id, struct qemu_plugin_tb *));
extern size_t qemu_plugin_tb_n_insns(const struct qemu_plugin_tb *);
extern struct qemu_plugin_insn *qemu_plugin_tb_get_insn(const struct qemu_plugin_tb *, size_t);
extern size_t qemu_plugin_insn_data(const struct qemu_plugin_insn *, void *, size_t);
extern uint64_t qemu_plugin_insn_vaddr(const struct qemu_plugin_insn *);
extern void qemu_plugin_register_vcpu_insn_exec_cb(struct qemu_plugin_insn *, void (*)(unsigned, void *), int, void *);
extern void qemu_plugin_register_vcpu_insn_exec_inline_per_vcpu(struct qemu_plugin_insn *, int, counter, uint64_t);
extern struct qemu_plugin_scoreboard *qemu_plugin_scoreboard_new(size_t);
extern uint64_t qemu_plugin_u64_get(counter, unsigned);

EXPORTED int qemu_plugin_version = 4;

static counter user, kernel;
static struct {
    uint64_t user, kernel;
} at_start[MOST_VCPUS][MOST_IDS];
static FILE *out;

static void section_starts(unsigned vcpu, void *data)
{
    unsigned id = (uintptr_t)data % MOST_IDS;

    at_start[vcpu % MOST_VCPUS][id].user = qemu_plugin_u64_get(user, vcpu);
    at_start[vcpu % MOST_VCPUS][id].kernel = qemu_plugin_u64_get(kernel, vcpu);
}

static void section_ends(unsigned vcpu, void *data)
{
    unsigned id = (uintptr_t)data % MOST_IDS;

    fprintf(out, "{\"id\":%u,\"vcpu\":%u,\"user\":%" PRIu64 ",\"kernel\":%" PRIu64 "}\n", id, vcpu,
            qemu_plugin_u64_get(user, vcpu) - at_start[vcpu % MOST_VCPUS][id].user,
            qemu_plugin_u64_get(kernel, vcpu) - at_start[vcpu % MOST_VCPUS][id].kernel);
    fflush(out);
}

/* The immediate of a mark, or 0. */
static uint32_t mark_of(const struct qemu_plugin_insn *instruction)
{
    uint8_t bytes[MARK_BYTES] = {0};
    uint32_t immediate;

    if (qemu_plugin_insn_data(instruction, bytes, MARK_BYTES) != MARK_BYTES)
        return 0;
    if (bytes[0] != 0x0f || bytes[1] != 0x1f || bytes[2] != 0x80)
        return 0;
    memcpy(&immediate, bytes + 3, sizeof immediate);
    return immediate;
}

/* Called once for each piece of code, when QEMU translates it. */
static void translated(plugin_id id, struct qemu_plugin_tb *code)
{
    (void)id;
    for (size_t i = 0; i < qemu_plugin_tb_n_insns(code); i++) {
        struct qemu_plugin_insn *instruction = qemu_plugin_tb_get_insn(code, i);
        bool is_user = !(qemu_plugin_insn_vaddr(instruction) >> 63);
        uint32_t mark = is_user ? mark_of(instruction) : 0;
        void *section = (void *)(uintptr_t)(mark & 0xffff);

        if (mark >> 16 == START_MARK)
            qemu_plugin_register_vcpu_insn_exec_cb(instruction, section_starts, NO_REGISTERS, section);
        if (mark >> 16 == END_MARK)
            qemu_plugin_register_vcpu_insn_exec_cb(instruction, section_ends, NO_REGISTERS, section);
        qemu_plugin_register_vcpu_insn_exec_inline_per_vcpu(instruction, ADD_TO_COUNTER, is_user ? user : kernel, 1);
    }
}

EXPORTED int qemu_plugin_install(plugin_id id, const void *info, int argc, char **argv)
{
    (void)info;
    out = stderr;
    for (int i = 0; i < argc; i++)
        if (!strncmp(argv[i], "out=", 4) && !(out = fopen(argv[i] + 4, "a")))
            return 1;
    user = (counter){qemu_plugin_scoreboard_new(sizeof(uint64_t)), 0};
    kernel = (counter){qemu_plugin_scoreboard_new(sizeof(uint64_t)), 0};
    qemu_plugin_register_vcpu_tb_trans_cb(id, translated);
    return 0;
}
