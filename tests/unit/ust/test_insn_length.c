/* SPDX-License-Identifier: MIT */
#include "insn_length.h"
#include "tdm_cmocka.h"

/* The bytes of one instruction and what is to be known of it; length 0: left alone. */
struct example {
	const char *what;
	uint8_t code[16];
	uint8_t size_bytes;
	struct tdm_insn insn;
};

static void check(const struct example *examples, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		const struct example *one = &examples[i];
		const struct tdm_insn got = tdm_insn_decode(one->code, one->size_bytes);

		if (got.length_bytes != one->insn.length_bytes ||
			got.rip_disp_at != one->insn.rip_disp_at ||
			got.is_control != one->insn.is_control ||
			got.is_unconditional != one->insn.is_unconditional) {
			fail_msg("%s: length %u, distance at %u, control %u, ends %u", one->what,
				got.length_bytes, got.rip_disp_at, got.is_control,
				got.is_unconditional);
		}
	}
}

#define CHECK(examples) check(examples, sizeof(examples) / sizeof((examples)[0]))

static void prefixes_belong_to_the_instruction(void **state)
{
	static const struct example examples[] = {
		{ "nop", { 0x90 }, 1, { .length_bytes = 1 } },
		{ "nopw cs:0(rax,rax)", { 0x66, 0x2e, 0x0f, 0x1f, 0x84, 0, 0, 0, 0, 0 }, 10,
			{ .length_bytes = 10 } },
		{ "lock cmpxchg rcx, distance", { 0xf0, 0x48, 0x0f, 0xb1, 0x0d, 1, 2, 3, 4 }, 9,
			{ .length_bytes = 9, .rip_disp_at = 5 } },
		{ "mov rax, fs:28", { 0x64, 0x48, 0x8b, 0x04, 0x25, 0x28, 0, 0, 0 }, 9,
			{ .length_bytes = 9 } },
		{ "prefixes alone", { 0x66, 0x66, 0x66 }, 3, { 0 } },
	};

	(void)state;
	CHECK(examples);
}

static void immediates_follow_the_operand_size(void **state)
{
	static const struct example examples[] = {
		{ "mov eax, imm32", { 0xb8, 0x66, 0, 0, 0 }, 5, { .length_bytes = 5 } },
		{ "mov r10, imm64", { 0x49, 0xba, 1, 2, 3, 4, 5, 6, 7, 8 }, 10,
			{ .length_bytes = 10 } },
		{ "mov ax, imm16", { 0x66, 0xb8, 1, 2 }, 4, { .length_bytes = 4 } },
		{ "test byte distance, imm8", { 0xf6, 0x05, 1, 2, 3, 4, 9 }, 7,
			{ .length_bytes = 7, .rip_disp_at = 2 } },
		{ "test di, imm16", { 0x66, 0xf7, 0xc7, 1, 2 }, 5, { .length_bytes = 5 } },
		{ "not edi: the same byte without an immediate", { 0xf7, 0xd7 }, 2,
			{ .length_bytes = 2 } },
		{ "cmp rax, -4096", { 0x48, 0x3d, 0, 0xf0, 0xff, 0xff }, 6, { .length_bytes = 6 } },
		{ "mov dword [rsp+8], imm32", { 0xc7, 0x44, 0x24, 8, 1, 2, 3, 4 }, 8,
			{ .length_bytes = 8 } },
	};

	(void)state;
	CHECK(examples);
}

static void addresses_have_their_own_bytes(void **state)
{
	static const struct example examples[] = {
		{ "lea rdi, distance", { 0x48, 0x8d, 0x3d, 1, 2, 3, 4 }, 7,
			{ .length_bytes = 7, .rip_disp_at = 3 } },
		{ "mov rax, [rsp]", { 0x48, 0x8b, 0x04, 0x24 }, 4, { .length_bytes = 4 } },
		{ "mov rax, [rbp+8]", { 0x48, 0x8b, 0x45, 8 }, 4, { .length_bytes = 4 } },
		{ "mov rax, [r13+rcx*8+disp32]", { 0x49, 0x8b, 0x84, 0xcd, 1, 2, 3, 4 }, 8,
			{ .length_bytes = 8 } },
		{ "mov eax, [rcx*4+disp32]: no base", { 0x8b, 0x04, 0x8d, 1, 2, 3, 4 }, 7,
			{ .length_bytes = 7 } },
	};

	(void)state;
	CHECK(examples);
}

static void what_changes_the_instruction_pointer_is_seen(void **state)
{
	static const struct example examples[] = {
		{ "syscall", { 0x0f, 0x05 }, 2, { .length_bytes = 2, .is_control = 1 } },
		{ "je", { 0x74, 2 }, 2, { .length_bytes = 2, .is_control = 1 } },
		{ "ja, far", { 0x0f, 0x87, 1, 2, 3, 4 }, 6,
			{ .length_bytes = 6, .is_control = 1 } },
		{ "call", { 0xe8, 1, 2, 3, 4 }, 5, { .length_bytes = 5, .is_control = 1 } },
		{ "call [distance]", { 0xff, 0x15, 1, 2, 3, 4 }, 6,
			{ .length_bytes = 6, .rip_disp_at = 2, .is_control = 1 } },
		{ "jmp rax", { 0xff, 0xe0 }, 2,
			{ .length_bytes = 2, .is_control = 1, .is_unconditional = 1 } },
		{ "push [rax]: the same byte", { 0xff, 0x30 }, 2, { .length_bytes = 2 } },
		{ "jmp", { 0xeb, 2 }, 2,
			{ .length_bytes = 2, .is_control = 1, .is_unconditional = 1 } },
		{ "ret", { 0xc3 }, 1,
			{ .length_bytes = 1, .is_control = 1, .is_unconditional = 1 } },
		{ "hlt", { 0xf4 }, 1,
			{ .length_bytes = 1, .is_control = 1, .is_unconditional = 1 } },
		{ "ud2", { 0x0f, 0x0b }, 2,
			{ .length_bytes = 2, .is_control = 1, .is_unconditional = 1 } },
		{ "xbegin looks like a mov", { 0xc7, 0xf8, 1, 2, 3, 4 }, 6, { 0 } },
		{ "xabort looks like a mov", { 0xc6, 0xf8, 1 }, 3, { 0 } },
	};

	(void)state;
	CHECK(examples);
}

static void what_is_not_known_is_left_alone(void **state)
{
	static const struct example examples[] = {
		{ "vzeroupper", { 0xc5, 0xf8, 0x77 }, 3, { 0 } },
		{ "EVEX", { 0x62, 0xf1, 0x7c, 0x48, 0x28, 0x00 }, 6, { 0 } },
		{ "pshufb: the 0F38 map", { 0x66, 0x0f, 0x38, 0x00, 0xc1 }, 5, { 0 } },
		{ "push es: not of 64-bit mode", { 0x06 }, 1, { 0 } },
		{ "16 bytes are one too many",
			{ 0x66, 0x66, 0x66, 0x66, 0x66, 0x66, 0x66, 0x66, 0x66, 0x66, 0x66, 0x66,
				0x66, 0xb8, 1, 2 },
			16, { 0 } },
		{ "no bytes", { 0 }, 0, { 0 } },
	};

	(void)state;
	CHECK(examples);
}

/* Each length of the above, with one byte less: not known, and nothing behind the bytes is read. */
static void an_instruction_that_is_cut_is_not_known(void **state)
{
	static const uint8_t whole[] = { 0x66, 0x2e, 0x0f, 0x1f, 0x84, 0, 0, 0, 0, 0 };

	(void)state;
	assert_int_equal(tdm_insn_decode(whole, sizeof(whole)).length_bytes, sizeof(whole));
	for (size_t room = 0; room < sizeof(whole); room++) {
		assert_int_equal(tdm_insn_decode(whole, room).length_bytes, 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(prefixes_belong_to_the_instruction),
		cmocka_unit_test(immediates_follow_the_operand_size),
		cmocka_unit_test(addresses_have_their_own_bytes),
		cmocka_unit_test(what_changes_the_instruction_pointer_is_seen),
		cmocka_unit_test(what_is_not_known_is_left_alone),
		cmocka_unit_test(an_instruction_that_is_cut_is_not_known),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
