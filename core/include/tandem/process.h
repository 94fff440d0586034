/* SPDX-License-Identifier: MIT */
/*
 * process.h - what every program of ours does before anything else.
 */
#ifndef TANDEM_PROCESS_H
#define TANDEM_PROCESS_H

/**
 * Makes it safe to open files: standard streams that are closed get something to stand for, so that no file gets their
 * numbers and no message goes into one; a limit of the size of files becomes an error of the write instead of a signal.
 */
void tdm_process_prepare(void);

#endif
