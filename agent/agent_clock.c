/* SPDX-License-Identifier: MIT */
#include "agent_clock.h"
#include <sys/timerfd.h>
#include <tandem/socket.h>
#include <time.h>
#include <unistd.h>

enum {
	/* Less is a reading that was interrupted, no suspend. */
	SUSPEND_NS = 1000000,
	STAMPS_PAUSE_NS = 900000000
};

/* A wall-clock timer far ahead, cancelled when the clock is set: the only timer of an idle agent, and it never fires. */
static void arm(int fd)
{
	const struct itimerspec far_ahead = { .it_value.tv_sec = INT32_MAX };

	if (fd >= 0) {
		timerfd_settime(fd, TFD_TIMER_ABSTIME | TFD_TIMER_CANCEL_ON_SET, &far_ahead, NULL);
	}
}

/* One clock less another, as precisely as eight readings tell. */
static uint64_t difference(enum tdm_clock one, uint64_t *width)
{
	const struct tdm_sandwich sandwich = tdm_clock_sandwich(TDM_CLOCK_MONO, one);

	*width = sandwich.width;
	return sandwich.inner - sandwich.outer;
}

void agent_clock_init(struct agent_clock *clock)
{
	pthread_mutex_init(&clock->lock, NULL);
	clock->step_fd = timerfd_create(CLOCK_REALTIME, TFD_NONBLOCK | TFD_CLOEXEC);
	arm(clock->step_fd);
	clock->boot_less_mono = difference(TDM_CLOCK_BOOT, &clock->boot_width);
	clock->real_less_mono = difference(TDM_CLOCK_REAL, &clock->real_width);
	clock->suspends = 0;
	clock->steps = 0;
	clock->stamps_last_ns = 0;
	vm_clock_open(&clock->vm, NULL);
	clock->has_vm_marker = vm_clock_marker(&clock->vm, &clock->vm_marker);
	clock->disruptions = 0;
}

void agent_clock_release(struct agent_clock *clock)
{
	if (clock->step_fd >= 0) {
		close(clock->step_fd);
	}
	vm_clock_release(&clock->vm);
	pthread_mutex_destroy(&clock->lock);
}

void agent_clock_rearm(struct agent_clock *clock)
{
	uint64_t count;
	uint32_t suspends, steps;

	/* ECANCELED is the news; the next read would give it again until the timer is set. */
	if (read(clock->step_fd, &count, sizeof(count)) < 0) {
		arm(clock->step_fd);
	}
	agent_clock_look(clock, &suspends, &steps);
}

static uint64_t distance(uint64_t a, uint64_t b)
{
	const uint64_t ahead = a - b;

	return ahead >> 63 ? -ahead : ahead;
}

void agent_clock_look(struct agent_clock *clock, uint32_t *suspends, uint32_t *steps)
{
	uint64_t boot_width, real_width;

	pthread_mutex_lock(&clock->lock);

	const uint64_t boot = difference(TDM_CLOCK_BOOT, &boot_width);
	const uint64_t real = difference(TDM_CLOCK_REAL, &real_width);

	if (distance(boot, clock->boot_less_mono) > SUSPEND_NS + boot_width + clock->boot_width) {
		clock->suspends++;
		clock->boot_less_mono = boot;
		clock->boot_width = boot_width;
	}
	/* Both are slewed alike: their difference changes by steps only. */
	if (distance(real, clock->real_less_mono) > real_width + clock->real_width + 1) {
		clock->steps++;
		clock->real_less_mono = real;
		clock->real_width = real_width;
	} else if (real_width < clock->real_width) {
		clock->real_less_mono = real;
		clock->real_width = real_width;
	}
	*suspends = clock->suspends;
	*steps = clock->steps;
	pthread_mutex_unlock(&clock->lock);
}

uint32_t agent_clock_disruptions(struct agent_clock *clock)
{
	uint64_t marker;
	uint32_t count;

	pthread_mutex_lock(&clock->lock);
	if (vm_clock_marker(&clock->vm, &marker)) {
		clock->disruptions += clock->has_vm_marker && marker != clock->vm_marker;
		clock->vm_marker = marker;
		clock->has_vm_marker = true;
	}
	count = clock->disruptions;
	pthread_mutex_unlock(&clock->lock);
	return count;
}

uint32_t agent_clock_epoch(
	enum tdm_clock trace, uint32_t suspends, uint32_t steps, uint32_t disruptions)
{
	/* Raw clocks and "mono" stand still in a suspend, "boot" goes on: against each other all jump. */
	return suspends + disruptions +
	       (trace == TDM_CLOCK_REAL || trace == TDM_CLOCK_TAI ? steps : 0);
}

bool agent_clock_may_stamp(struct agent_clock *clock)
{
	const uint64_t now_ns = tdm_now_ns();
	bool may;

	pthread_mutex_lock(&clock->lock);
	may = clock->stamps_last_ns == 0 || now_ns - clock->stamps_last_ns >= STAMPS_PAUSE_NS;
	if (may) {
		clock->stamps_last_ns = now_ns;
	}
	pthread_mutex_unlock(&clock->lock);
	return may;
}
