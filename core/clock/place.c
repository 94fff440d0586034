/* SPDX-License-Identifier: MIT */
#include "estimate_priv.h"
#include <math.h>

tdm_i128 place_distance(uint64_t to, uint64_t from)
{
	return (tdm_i128)to - (tdm_i128)from;
}

/* Splits guest distance * num / den into whole host units and the rest. */
static tdm_i128 scaled(const struct estimate *est, uint64_t guest, double *rest)
{
	const tdm_i128 product = place_distance(guest, est->guest_ref) * (tdm_i128)est->num;
	tdm_i128 quotient = product / (tdm_i128)est->den;
	tdm_i128 remainder = product % (tdm_i128)est->den;

	if (remainder < 0) {
		quotient--;
		remainder += (tdm_i128)est->den;
	}
	*rest = (double)remainder / (double)est->den;
	return quotient;
}

double place_x(const struct estimate *est, uint64_t guest)
{
	double rest;
	const tdm_i128 whole = scaled(est, guest, &rest);

	return ((double)whole + rest) * est->host_unit_ns;
}

tdm_i128 place_host(const struct estimate *est, uint64_t guest, double y)
{
	double rest;
	const tdm_i128 whole = scaled(est, guest, &rest);

	return (tdm_i128)est->host_ref + whole +
	       (tdm_i128)floor(rest + y / est->host_unit_ns + 0.5);
}

uint64_t place_guest(const struct estimate *est, double x)
{
	const double ticks = x / est->host_unit_ns * (double)est->den / (double)est->num;
	const tdm_i128 guest = (tdm_i128)est->guest_ref + (tdm_i128)floor(ticks + 0.5);

	if (guest < 0) {
		return 0;
	}
	return guest > (tdm_i128)TDM_READING_MAX ? TDM_READING_MAX : (uint64_t)guest;
}

double place_y(const struct estimate *est, uint64_t guest, uint64_t host)
{
	double rest;
	const tdm_i128 whole = scaled(est, guest, &rest);

	return ((double)(place_distance(host, est->host_ref) - whole) - rest) * est->host_unit_ns;
}

void place_sample(const struct estimate *est, struct sample *sample)
{
	const struct tdm_exchange *stamps = &sample->stamps;

	sample->x_lower = place_x(est, stamps->guest_got);
	sample->lower = place_y(est, stamps->guest_got, stamps->host_sent) - sample->slack;
	sample->x_upper = place_x(est, stamps->guest_sent);
	sample->upper = place_y(est, stamps->guest_sent, stamps->host_got) + sample->slack;
}
