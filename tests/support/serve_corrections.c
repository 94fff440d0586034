/* SPDX-License-Identifier: MIT */
/*
 * serve_corrections - a corrections service for tests, made of the library's own link.
 *
 * usage: serve_corrections ADDRESS FILE
 * Prints the address once it listens. Sends each client the lines of FILE, then what is appended to it, "wait" each
 * second, and ends after "end". FILE is as the service would send it: a test plays the clock by appending lines.
 */
#include <stdio.h>
#include <string.h>
#include <tandem/address.h>
#include <tandem/sync_link.h>
#include <unistd.h>

static int fail(const char *what, const struct tdm_error *err)
{
	fprintf(stderr, "serve_corrections: %s: %s\n", what, err->text);
	return 1;
}

/* Waits for OPEN and grants it. */
static enum tdm_status grant(struct tdm_link *link, struct tdm_error *err)
{
	struct tdm_frame frame;
	struct tdm_open open;
	struct tdm_buffer opened = { .cap = 4096 };
	const uint64_t deadline_ns = tdm_deadline_ns(3000);
	enum tdm_status status;

	/* It also returns once the link has become ready, where OPEN is still on its way. */
	do {
		status = tdm_link_receive(link, &frame, deadline_ns, -1, err);
	} while (status == TDM_AGAIN && tdm_now_ns() < deadline_ns);
	if (status != TDM_OK) {
		return status;
	}
	if (frame.type != TDM_FRAME_OPEN ||
		tdm_open_get(frame.body, frame.size_bytes, &open, err) != TDM_OK ||
		open.purpose != TDM_PURPOSE_CORRECTIONS) {
		return tdm_fail(err, TDM_ERR_PEER, "wanted an OPEN for corrections");
	}
	status = tdm_opened_put(&opened, open.session, 0);
	if (status == TDM_OK) {
		status = tdm_link_send(link, TDM_FRAME_OPENED, opened.bytes, opened.size,
			tdm_deadline_ns(3000), err);
	}
	tdm_buffer_release(&opened);
	return status;
}

static int serve(int fd, const char *path)
{
	const struct tdm_link_options options = { .capabilities = TDM_CAN_CORRECTIONS };
	struct tdm_error err = { .status = TDM_OK };
	struct tdm_link *link = tdm_link_create(fd, TDM_ROLE_SERVER, &options, &err);
	FILE *file = fopen(path, "r");
	char chunk[4096];
	unsigned int idle = 0;

	if (!link || !file || grant(link, &err) != TDM_OK) {
		tdm_link_destroy(link);
		if (file) {
			fclose(file);
		}
		return fail("client", &err);
	}
	for (;;) {
		const size_t got = fread(chunk, 1, sizeof(chunk), file);
		const char *bytes = chunk;
		size_t size = got;

		clearerr(file);
		if (!got) {
			usleep(20000);
			if (++idle % 50) {
				continue;
			}
			bytes = "wait\n";
			size = strlen(bytes);
		}
		if (tdm_link_send(link, TDM_FRAME_LINES, bytes, size, tdm_deadline_ns(3000),
			    &err) != TDM_OK) {
			return fail("send", &err);
		}
		if (got >= 4 && memcmp(chunk + got - 4, "end\n", 4) == 0) {
			break;
		}
	}
	fclose(file);
	tdm_link_destroy(link);
	return 0;
}

int main(int argc, char **argv)
{
	struct tdm_address address;
	struct tdm_error err = { .status = TDM_OK };
	char text[300];
	int listener;

	if (argc != 3) {
		fputs("usage: serve_corrections ADDRESS FILE\n", stderr);
		return 2;
	}
	if (tdm_address_parse(argv[1], TDM_ADDRESS_LISTEN, &address, &err) != TDM_OK ||
		tdm_socket_listen(&address, &listener, &err) != TDM_OK) {
		return fail(argv[1], &err);
	}
	tdm_address_print(&address, text, sizeof(text));
	printf("%s\n", text);
	fflush(stdout);
	for (;;) {
		struct tdm_peer peer;
		int fd;

		if (tdm_socket_wait(listener, TDM_WAIT_READ, -1, tdm_deadline_ns(60000)) ==
				TDM_OK &&
			tdm_socket_accept(listener, &fd, &peer, &err) == TDM_OK) {
			if (!tdm_socket_is_undelayed(fd)) {
				fputs("serve_corrections: the accepted socket is delayed\n",
					stderr);
				return 1;
			}
			/* A client that gave up comes again. */
			if (serve(fd, argv[2]) == 0) {
				return 0;
			}
		}
	}
}
