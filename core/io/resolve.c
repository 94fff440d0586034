/* SPDX-License-Identifier: MIT */
#include <netdb.h>
#include <string.h>
#include <sys/socket.h>
#include <tandem/address.h>

enum tdm_status tdm_address_resolve(struct tdm_address *address, struct tdm_error *err)
{
	if (address->kind != TDM_ADDRESS_TCP) {
		return TDM_OK;
	}

	const struct addrinfo hints = { .ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM };
	struct addrinfo *found = NULL;
	const int failure = getaddrinfo(address->host, NULL, &hints, &found);

	if (failure != 0) {
		return tdm_fail(
			err, TDM_ERR_IO, "host \"%s\": %s", address->host, gai_strerror(failure));
	}

	char numeric[TDM_HOST_MAX + 1];
	const int unprintable = getnameinfo(found->ai_addr, found->ai_addrlen, numeric,
		sizeof(numeric), NULL, 0, NI_NUMERICHOST);

	freeaddrinfo(found);
	if (unprintable != 0) {
		return tdm_fail(err, TDM_ERR_IO, "host \"%s\": %s", address->host,
			gai_strerror(unprintable));
	}
	memcpy(address->host, numeric, sizeof(address->host));
	return TDM_OK;
}
