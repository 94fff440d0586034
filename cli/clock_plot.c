/* SPDX-License-Identifier: MIT */
#include "clock_plot.h"
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <tandem/text.h>
#include <tandem/wide.h>

enum {
	WIDTH = 960,
	LEFT = 92, /* of the frames */
	RIGHT = 24,
	FRAME_WIDTH = WIDTH - LEFT - RIGHT,
	UPPER_TOP = 92,
	FRAME_HEIGHT = 220,
	LOWER_TOP = UPPER_TOP + FRAME_HEIGHT + 70,
	HEIGHT = LOWER_TOP + FRAME_HEIGHT + 64,
	MAX_DOTS = 6000,
	WORD_WIDTH = 34, /* of a break's kind */
};

/* One frame: its data ranges, and what a unit of its axis is called. */
struct frame {
	double top;
	double low, high; /* ns */
	double unit_ns;
	const char *unit;
};

struct plot {
	FILE *out;
	const struct tdm_timeline *timeline;
	struct tdm_timeline_info info;
	uint64_t guest0, host0;
	double first_s, last_s;
	double slope; /* what is taken off the upper frame, ns a s */
};

/* Plain colours, no variables: programs that draw SVG without a browser know none. */
static const char style[] =
	"<style>"
	"svg{font-family:system-ui,sans-serif;font-size:12px}.head{font-size:16px}.grid{stroke-width:1}"
	".frame{fill:none;stroke-width:1}.line{fill:none;stroke-width:1.6}.band{fill-opacity:.2;stroke:none}"
	".dot{fill-opacity:.75}.doubt{fill-opacity:.3}.step{stroke-width:1.3;stroke-dasharray:5 3}"
	"text{fill:#222}.back{fill:#fff}.grid{stroke:#d8d8d8}.frame{stroke:#222}.line{stroke:#0b62c4}"
	".band{fill:#0b62c4}.dot{fill:#b3541e}.doubt{fill:#b8860b}.step{stroke:#c2185b}"
	"@media (prefers-color-scheme:dark){"
	"text{fill:#e4e4e4}.back{fill:#16181c}.grid{stroke:#3a3d44}.frame{stroke:#e4e4e4}.line{stroke:#6db3ff}"
	".band{fill:#6db3ff}.dot{fill:#ffab70}.doubt{fill:#e3c04a}.step{stroke:#ff7ab0}"
	"}</style>\n";

static void put_text(FILE *out, const char *text)
{
	for (; *text; text++) {
		const unsigned char c = (unsigned char)*text;

		if (c == '&') {
			fputs("&amp;", out);
		} else if (c == '<') {
			fputs("&lt;", out);
		} else if (c == '>') {
			fputs("&gt;", out);
		} else {
			fputc(c < ' ' || c > '~' ? '?' : c, out);
		}
	}
}

/* A difference of readings in ns; as a double it is good to a part in 2^53, which no eye sees. */
static double difference_ns(uint64_t to, uint64_t from, uint64_t hz)
{
	return (double)((tdm_i128)to - (tdm_i128)from) * (1e9 / (double)hz);
}

static double host_units_ns(const struct plot *plot, uint64_t units)
{
	return (double)units * (1e9 / (double)plot->info.host_unit_hz);
}

static double seconds(const struct plot *plot, uint64_t guest)
{
	return difference_ns(guest, plot->guest0, plot->info.guest_unit_hz) / 1e9;
}

/* Offset against that of the first knot, less the drift of the longest segment. */
static double offset_ns(const struct plot *plot, uint64_t guest, uint64_t host)
{
	const double at_s = seconds(plot, guest);

	return difference_ns(host, plot->host0, plot->info.host_unit_hz) - at_s * 1e9 -
	       plot->slope * at_s;
}

static double to_x(const struct plot *plot, double at_s)
{
	const double x =
		LEFT + (at_s - plot->first_s) / (plot->last_s - plot->first_s) * FRAME_WIDTH;

	return fmin(fmax(x, LEFT), LEFT + FRAME_WIDTH);
}

static double to_y(const struct frame *frame, double ns)
{
	const double y =
		frame->top + (frame->high - ns) / (frame->high - frame->low) * FRAME_HEIGHT;

	return fmin(fmax(y, frame->top), frame->top + FRAME_HEIGHT);
}

static void find_range(struct plot *plot)
{
	double longest = -1;

	plot->first_s = INFINITY;
	plot->last_s = -INFINITY;
	for (size_t i = 0; i < plot->info.segment_count; i++) {
		const struct tdm_segment_info segment = tdm_timeline_segment(plot->timeline, i);

		if (!segment.knot_count) {
			continue;
		}

		const struct tdm_knot *a = &segment.knots[0];
		const struct tdm_knot *b = &segment.knots[segment.knot_count - 1];
		const double run = seconds(plot, b->guest) - seconds(plot, a->guest);

		plot->first_s = fmin(plot->first_s, seconds(plot, a->guest));
		plot->last_s = fmax(plot->last_s, seconds(plot, b->guest));
		if (run > longest && run > 0) {
			longest = run;
			plot->slope = (difference_ns(b->host, a->host, plot->info.host_unit_hz) -
					      run * 1e9) /
				      run;
		}
	}
	if (plot->last_s - plot->first_s < 1e-6) {
		plot->first_s -= 0.5;
		plot->last_s += 0.5;
	}

	/* Air at the sides: the first and the last burst are the largest, and not to be mistaken for the frame. */
	const double air = (plot->last_s - plot->first_s) / 50;

	plot->first_s -= air;
	plot->last_s += air;
}

static void choose_unit(struct frame *frame)
{
	static const struct {
		double ns;
		const char *name;
	} units[] = { { 1e9, "s" }, { 1e6, "ms" }, { 1e3, "us" }, { 1, "ns" } };

	const double most = fmax(fabs(frame->low), fabs(frame->high));

	for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
		frame->unit_ns = units[i].ns;
		frame->unit = units[i].name;
		if (most >= 2 * units[i].ns) {
			break;
		}
	}
}

/* The step of a ladder 1, 2, 5, 10 that makes at most @p most parts of a range. */
static double tick_step(double range, int most)
{
	const double rough = range / most;
	const double power = pow(10, floor(log10(rough)));
	const double lead = rough / power;

	return power * (lead <= 1 ? 1 : lead <= 2 ? 2 : lead <= 5 ? 5 : 10);
}

/* Ticks are counted: a step below the precision of a huge value would never get on. */
static void put_axes(const struct plot *plot, const struct frame *frame, const char *label)
{
	const double y_step = tick_step((frame->high - frame->low) / frame->unit_ns, 6);
	const double x_step = tick_step(plot->last_s - plot->first_s, 9);
	const double bottom = frame->top + FRAME_HEIGHT;
	const double y_first = ceil(frame->low / frame->unit_ns / y_step);
	const double x_first = ceil(plot->first_s / x_step);

	for (int i = 0; i < 12; i++) {
		const double value = (y_first + i) * y_step;

		if (value * frame->unit_ns > frame->high) {
			break;
		}
		const double y = to_y(frame, value * frame->unit_ns);

		fprintf(plot->out,
			"<path class=\"grid\" d=\"M%d %.1fH%d\"/><text x=\"%d\" y=\"%.1f\" text-anchor=\"end\">%.6g</text>\n",
			LEFT, y, LEFT + FRAME_WIDTH, LEFT - 6, y + 4, value + 0.0);
	}
	for (int i = 0; i < 14; i++) {
		const double value = (x_first + i) * x_step;

		if (value > plot->last_s) {
			break;
		}
		const double x = to_x(plot, value);

		fprintf(plot->out,
			"<path class=\"grid\" d=\"M%.1f %.0fV%.0f\"/><text x=\"%.1f\" y=\"%.0f\" text-anchor=\"middle\">%.6g</text>\n",
			x, frame->top, bottom, x, bottom + 16, value + 0.0);
	}
	fprintf(plot->out,
		"<rect class=\"frame\" x=\"%d\" y=\"%.0f\" width=\"%d\" height=\"%d\"/>"
		"<text transform=\"translate(22 %.0f) rotate(-90)\" text-anchor=\"middle\">%s, %s</text>\n",
		LEFT, frame->top, FRAME_WIDTH, FRAME_HEIGHT, frame->top + FRAME_HEIGHT / 2.0, label,
		frame->unit);
}

static void put_breaks(const struct plot *plot, const struct frame *frame, bool with_words)
{
	double free_x = 0;

	for (size_t i = 0; i < plot->info.doubt_count; i++) {
		uint64_t from, to;

		tdm_timeline_doubt(plot->timeline, i, &from, &to);

		const double x = to_x(plot, seconds(plot, from));

		fprintf(plot->out,
			"<rect class=\"doubt\" x=\"%.1f\" y=\"%.0f\" width=\"%.1f\" height=\"%d\"/>\n",
			x, frame->top, fmax(to_x(plot, seconds(plot, to)) - x, 2), FRAME_HEIGHT);
	}
	for (size_t i = 1; i < plot->info.segment_count; i++) {
		const struct tdm_segment_info segment = tdm_timeline_segment(plot->timeline, i);
		const double x = to_x(plot, seconds(plot, segment.from));

		fprintf(plot->out, "<path class=\"step\" d=\"M%.1f %.0fv%d\"/>\n", x, frame->top,
			FRAME_HEIGHT);
		/* Above the frame, where nothing else is; breaks that stand too close share the first one's word. */
		if (with_words && x >= free_x) {
			fprintf(plot->out,
				"<text x=\"%.1f\" y=\"%.0f\" font-size=\"10\" text-anchor=\"middle\">%s</text>\n",
				x, frame->top - 5, tdm_segment_kind_name(segment.kind));
			free_x = x + WORD_WIDTH;
		}
	}
}

/* The bound as an area and the estimate as a line; in the lower frame the estimate is 0. */
static void put_segments(const struct plot *plot, const struct frame *frame, bool is_lower)
{
	for (size_t i = 0; i < plot->info.segment_count; i++) {
		const struct tdm_segment_info segment = tdm_timeline_segment(plot->timeline, i);

		if (!segment.knot_count) {
			continue;
		}
		fputs("<path class=\"band\" d=\"M", plot->out);
		for (size_t k = 0; k < 2 * segment.knot_count; k++) {
			const bool back = k >= segment.knot_count;
			const struct tdm_knot *knot =
				&segment.knots[back ? 2 * segment.knot_count - 1 - k : k];
			const double middle =
				is_lower ? 0 : offset_ns(plot, knot->guest, knot->host);
			const double ns = back ? middle - host_units_ns(plot, knot->minus)
					       : middle + host_units_ns(plot, knot->plus);

			fprintf(plot->out, "%s%.1f %.1f", k ? "L" : "",
				to_x(plot, seconds(plot, knot->guest)), to_y(frame, ns));
		}
		fputs("Z\"/>\n<path class=\"line\" d=\"M", plot->out);
		for (size_t k = 0; k < segment.knot_count; k++) {
			const struct tdm_knot *knot = &segment.knots[k];

			fprintf(plot->out, "%s%.1f %.1f", k ? "L" : "",
				to_x(plot, seconds(plot, knot->guest)),
				to_y(frame,
					is_lower ? 0 : offset_ns(plot, knot->guest, knot->host)));
		}
		fputs("h.1\"/>\n", plot->out);
	}
}

static bool is_drawable(const struct tdm_exchange_record *record)
{
	const struct tdm_exchange *trace = &record->trace;

	return !(record->marks & TDM_MARK_INVALID) && trace->host_sent && trace->guest_got &&
	       trace->host_got >= trace->host_sent && trace->guest_sent >= trace->guest_got;
}

/* A dot; what lies beyond the frame is an arrow at its edge. */
static void put_dot(const struct plot *plot, const struct frame *frame, double at_s, double ns)
{
	const double x = to_x(plot, at_s);
	const double y = to_y(frame, ns);

	if (ns > frame->high || ns < frame->low) {
		const bool up = ns > frame->high;

		fprintf(plot->out, "<path class=\"dot\" d=\"M%.1f %.1fh5l-2.5 %sz\"/>", x - 2.5,
			up ? y + 7 : y - 7, up ? "-5" : "5");
	} else {
		fprintf(plot->out, "<circle class=\"dot\" cx=\"%.1f\" cy=\"%.1f\" r=\"1.4\"/>", x,
			y);
	}
}

static void put_samples(const struct plot *plot, const struct frame *upper,
	const struct frame *lower, const struct tdm_exchange_log *log)
{
	size_t count;
	const struct tdm_exchange_record *records = tdm_exchange_log_records(log, &count);
	const size_t stride = count / MAX_DOTS + 1;

	for (size_t i = 0; i < count; i += stride) {
		const struct tdm_exchange *trace = &records[i].trace;

		if (!is_drawable(&records[i])) {
			continue;
		}

		const uint64_t guest =
			trace->guest_got + (trace->guest_sent - trace->guest_got) / 2;
		const uint64_t host = trace->host_sent + (trace->host_got - trace->host_sent) / 2;
		const double at_s = seconds(plot, guest);

		if (at_s < plot->first_s - 1 || at_s > plot->last_s + 1) {
			continue;
		}

		const uint64_t told = tdm_timeline_apply(plot->timeline, guest, UINT32_MAX, NULL);

		put_dot(plot, upper, at_s, offset_ns(plot, guest, host));
		put_dot(plot, lower, at_s, difference_ns(host, told, plot->info.host_unit_hz));
		fputc('\n', plot->out);
	}
}

static int compare_doubles(const void *a, const void *b)
{
	const double left = *(const double *)a;
	const double right = *(const double *)b;

	return (left > right) - (left < right);
}

/* Upper frame: all of the estimate. Lower frame: the bound where it is usual; what is wider touches the edge. */
static bool find_heights(const struct plot *plot, struct frame *upper, struct frame *lower)
{
	double *widths = malloc((plot->info.knot_count + 1) * sizeof(*widths));
	size_t count = 0;

	if (!widths) {
		return false;
	}
	upper->low = INFINITY;
	upper->high = -INFINITY;
	for (size_t i = 0; i < plot->info.segment_count; i++) {
		const struct tdm_segment_info segment = tdm_timeline_segment(plot->timeline, i);

		for (size_t k = 0; k < segment.knot_count; k++) {
			const struct tdm_knot *knot = &segment.knots[k];
			const double ns = offset_ns(plot, knot->guest, knot->host);

			widths[count++] = host_units_ns(
				plot, knot->minus > knot->plus ? knot->minus : knot->plus);
			upper->low = fmin(upper->low, ns);
			upper->high = fmax(upper->high, ns);
		}
	}
	qsort(widths, count, sizeof(*widths), compare_doubles);

	/* Knots stand close around breaks, where the bound is wide: the usual one is among the narrow ones. */
	const double usual = fmax(widths[count / 5], 1);

	/* All of the bound where it is not several times the usual one, and some air. */
	const double seen = fmin(widths[count - 1 - count / 10], 3 * usual);
	const double margin = fmax(1.15 * seen, (upper->high - upper->low) / 20);

	upper->low -= margin;
	upper->high += margin;
	lower->high = 2 * fmax(usual, fmin(widths[count / 2], 2 * usual));
	lower->low = -lower->high;
	choose_unit(upper);
	choose_unit(lower);
	free(widths);
	return true;
}

static void put_legend(const struct plot *plot, bool has_log)
{
	static const struct {
		const char *shape, *words;
		int width;
	} items[] = {
		{ "<path class=\"line\" d=\"M%d 60h22\"/>", "estimate", 100 },
		{ "<rect class=\"band\" x=\"%d\" y=\"54\" width=\"22\" height=\"12\"/>", "bound",
			84 },
		{ "<rect class=\"doubt\" x=\"%d\" y=\"54\" width=\"22\" height=\"12\"/>",
			"doubt: a break is in here", 188 },
		{ "<path class=\"step\" d=\"M%d 60h22\"/>", "step", 76 },
		{ "<circle class=\"dot\" cx=\"%d\" cy=\"60\" r=\"2.5\" transform=\"translate(16)\"/>",
			"exchange, its middle", 156 },
		{ "<path class=\"dot\" d=\"M%d 63h7l-3.5-7z\" transform=\"translate(14)\"/>",
			"beyond the frame", 0 },
	};

	int x = LEFT;

	for (size_t i = 0; i < sizeof(items) / sizeof(items[0]) - (has_log ? 0 : 2); i++) {
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
		fprintf(plot->out, items[i].shape, x);
#pragma GCC diagnostic pop
		fprintf(plot->out, "<text x=\"%d\" y=\"64\">%s</text>\n", x + 28, items[i].words);
		x += items[i].width;
	}
}

static void put_head(const struct plot *plot, const char *name)
{
	const struct tdm_timeline_info *info = &plot->info;

	fprintf(plot->out,
		"<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\" width=\"%d\" height=\"%d\" role=\"img\">\n<title>",
		WIDTH, HEIGHT, WIDTH, HEIGHT);
	put_text(plot->out, name);
	fputs("</title>\n", plot->out);
	fputs(style, plot->out);
	fprintf(plot->out,
		"<rect class=\"back\" width=\"%d\" height=\"%d\"/>\n<text class=\"head\" x=\"%d\" y=\"24\">",
		WIDTH, HEIGHT, LEFT);
	put_text(plot->out, name);
	fprintf(plot->out, "</text>\n<text x=\"%d\" y=\"43\">guest clock ", LEFT);
	put_text(plot->out, info->guest_clock ? info->guest_clock : "?");
	fputs(", host clock ", plot->out);
	put_text(plot->out, info->host_clock ? info->host_clock : "?");
	fprintf(plot->out, ", drift %+.4g ppm taken off, rate within %" PRIu64 " ppb</text>\n",
		plot->slope / 1e3, info->rate_ppb);
}

enum tdm_status clock_plot_write(const char *path, const char *name,
	const struct tdm_timeline *timeline, const struct tdm_exchange_log *log,
	struct tdm_error *err)
{
	struct plot plot = { .timeline = timeline, .info = tdm_timeline_get_info(timeline) };
	struct frame upper = { .top = UPPER_TOP };
	struct frame lower = { .top = LOWER_TOP };
	char *text = NULL;
	size_t text_bytes = 0;
	uint64_t last;

	if (!tdm_timeline_range(timeline, &plot.guest0, &last)) {
		return tdm_fail(err, TDM_ERR_RANGE, "%s: no knot that could be drawn", name);
	}
	plot.host0 = tdm_timeline_apply(timeline, plot.guest0, UINT32_MAX, NULL);
	find_range(&plot);
	plot.out = open_memstream(&text, &text_bytes);
	if (!plot.out || !find_heights(&plot, &upper, &lower)) {
		if (plot.out) {
			fclose(plot.out);
		}
		free(text);
		return tdm_fail(err, TDM_ERR_NOMEM, "%s: no memory for the picture", path);
	}
	put_head(&plot, name);
	put_legend(&plot, log != NULL);
	put_axes(&plot, &upper, "host less guest, from the first");
	put_axes(&plot, &lower, "exchanges less estimate");
	put_breaks(&plot, &upper, true);
	put_breaks(&plot, &lower, false);
	/* The estimate on top: there are many dots. */
	if (log) {
		put_samples(&plot, &upper, &lower, log);
	}
	put_segments(&plot, &upper, false);
	put_segments(&plot, &lower, true);
	fprintf(plot.out,
		"<text x=\"%.0f\" y=\"%d\" text-anchor=\"middle\">guest time from the first knot, s</text>\n</svg>\n",
		LEFT + FRAME_WIDTH / 2.0, HEIGHT - 14);

	const bool failed = ferror(plot.out) != 0;
	enum tdm_status status;

	if (fclose(plot.out) != 0 || failed) {
		status = tdm_fail(err, TDM_ERR_NOMEM, "%s: no memory for the picture", path);
	} else {
		status = tdm_text_write_file(path, text, text_bytes, err);
	}
	free(text);
	return status;
}
