/* SPDX-License-Identifier: MIT */
#include "agent.h"
#include <tandem/process.h>

int main(int argc, char **argv)
{
	static struct agent_options options;

	tdm_process_prepare();

	const int status = agent_options_parse(&options, argc, argv);

	return status >= 0 ? status : agent_run(&options);
}
