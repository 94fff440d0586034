/* SPDX-License-Identifier: MIT */
/* The client's beginning of a connection, of the link's public parts alone. */
#include <string.h>
#include <tandem/sync_link.h>

/* A wait has ended without what it was for: because nobody wants it any more, or because it took too long. */
static enum tdm_status waited(int stop_fd, const char *what, struct tdm_error *err)
{
	return tdm_socket_is_stopped(stop_fd) ? tdm_fail(err, TDM_AGAIN, "interrupted")
					      : tdm_fail(err, TDM_ERR_PEER, "%s", what);
}

enum tdm_status tdm_link_greet(const struct tdm_address *address,
	const struct tdm_link_options *options, uint64_t deadline_ns, struct tdm_link **link,
	struct tdm_error *err)
{
	struct tdm_frame frame;
	const int stop_fd = options->stop_fd > 0 ? options->stop_fd : -1;
	int fd;
	enum tdm_status status = tdm_socket_connect(address, deadline_ns, stop_fd, &fd, err);

	*link = NULL;
	if (status != TDM_OK) {
		return status;
	}

	struct tdm_link *made = tdm_link_create(fd, TDM_ROLE_CLIENT, options, err);

	if (!made) {
		return err ? err->status : TDM_ERR_PEER;
	}
	while (!tdm_link_is_ready(made)) {
		status = tdm_link_receive(made, &frame, deadline_ns, stop_fd, err);
		if (tdm_link_is_ready(made)) {
			break;
		}
		if (status == TDM_AGAIN) {
			status = waited(stop_fd, "no greeting came in time", err);
		} else if (status == TDM_END) {
			status = tdm_fail(
				err, TDM_ERR_PEER, "the peer ended the connection at its greeting");
		}
		if (status != TDM_OK) {
			tdm_link_destroy(made);
			return status;
		}
	}
	*link = made;
	return TDM_OK;
}

enum tdm_status tdm_link_request(struct tdm_link *link, const struct tdm_buffer *open,
	uint64_t deadline_ns, int stop_fd, struct tdm_opened *opened, struct tdm_error *err)
{
	struct tdm_frame frame;
	enum tdm_status status =
		tdm_link_send(link, TDM_FRAME_OPEN, open->bytes, open->size, deadline_ns, err);

	if (status != TDM_OK) {
		return status;
	}
	status = tdm_link_receive(link, &frame, deadline_ns, stop_fd, err);
	switch (status) {
	case TDM_OK:
		break;
	case TDM_AGAIN:
		return waited(stop_fd, "no answer to OPEN came in time", err);
	case TDM_END:
		return tdm_fail(err, TDM_ERR_PEER, "the peer ended the connection at OPEN");
	default:
		return status;
	}
	if (frame.type != TDM_FRAME_OPENED) {
		tdm_link_refuse(link, "OPENED is wanted next");
		return tdm_fail(
			err, TDM_ERR_PEER, "OPEN was answered by a frame of type %u", frame.type);
	}
	return tdm_opened_get(frame.body, frame.size_bytes, opened, err);
}

enum tdm_status tdm_link_open(const struct tdm_address *address,
	const struct tdm_link_options *options, const struct tdm_buffer *open, uint64_t deadline_ns,
	uint32_t answer_ms, struct tdm_link **link, struct tdm_opened *opened,
	struct tdm_error *err)
{
	struct tdm_opened unused;
	enum tdm_status status = tdm_link_greet(address, options, deadline_ns, link, err);

	if (status == TDM_OK) {
		status = tdm_link_request(*link, open,
			answer_ms ? tdm_deadline_ns(answer_ms) : deadline_ns,
			options->stop_fd > 0 ? options->stop_fd : -1, opened ? opened : &unused,
			err);
		if (status != TDM_OK) {
			tdm_link_destroy(*link);
			*link = NULL;
		}
	}
	if (status != TDM_OK) {
		char text[320];

		tdm_address_print(address, text, sizeof(text));
		if (err && !strstr(err->text, text)) {
			tdm_error_prefix(err, "%s", text);
		}
	}
	return status;
}
