/* SPDX-License-Identifier: MIT */
/*
 * syscall_list.h - the one table of typed system calls: number, name, fields of entry and exit.
 *
 * No include guard: whoever includes it defines TDM_CALL(number, name, entry, exit) first, and the
 * field macros when it wants the fields:
 *
 *   INT(type, name, i)   an argument shown in decimal; i counts from 0
 *   HEX(type, name, i)   the same in hexadecimal: addresses, masks
 *   PATH(name, i)        a path name, copied safely on entry; "" where the pointer is bad
 *   FDS(name, i)         two descriptors that the call wrote to memory, on exit
 *   NONE                 no field (an entry without arguments; an exit has its ret without saying)
 *
 * Names, order, signedness and width are those of LTTng's kernel tracer 2.13 on x86_64 (what it
 * writes on entry stands here on entry, output arguments stand on exit); the event of stat is
 * therefore newstat. The enumerations and the decoded socket addresses of the kernel tracer are left
 * out: their integers are here.
 */
/* clang-format off */
TDM_CALL(0, read, INT(unsigned int, fd, 0) INT(size_t, count, 2), HEX(unsigned long, buf, 1))
TDM_CALL(1, write, INT(unsigned int, fd, 0) HEX(unsigned long, buf, 1) INT(size_t, count, 2), NONE)
TDM_CALL(2, open, PATH(filename, 0) INT(int, flags, 1) INT(unsigned short, mode, 2), NONE)
TDM_CALL(3, close, INT(unsigned int, fd, 0), NONE)
TDM_CALL(4, newstat, PATH(filename, 0), HEX(unsigned long, statbuf, 1))
TDM_CALL(5, newfstat, INT(unsigned int, fd, 0), HEX(unsigned long, statbuf, 1))
TDM_CALL(6, newlstat, PATH(filename, 0), HEX(unsigned long, statbuf, 1))
TDM_CALL(7, poll, HEX(unsigned long, ufds, 0) INT(unsigned int, nfds, 1) INT(int, timeout_msecs, 2), NONE)
TDM_CALL(8, lseek, INT(unsigned int, fd, 0) INT(long, offset, 1) INT(unsigned int, whence, 2), NONE)
TDM_CALL(9, mmap, HEX(unsigned long, addr, 0) INT(unsigned long, len, 1) INT(unsigned long, prot, 2)
	INT(unsigned long, flags, 3) INT(unsigned long, fd, 4) INT(unsigned long, off, 5), NONE)
TDM_CALL(10, mprotect, HEX(unsigned long, start, 0) INT(size_t, len, 1) INT(unsigned long, prot, 2), NONE)
TDM_CALL(11, munmap, HEX(unsigned long, addr, 0) INT(size_t, len, 1), NONE)
TDM_CALL(12, brk, HEX(unsigned long, brk, 0), NONE)
TDM_CALL(13, rt_sigaction, INT(int, sig, 0) HEX(unsigned long, act, 1) INT(size_t, sigsetsize, 3),
	HEX(unsigned long, oact, 2))
TDM_CALL(14, rt_sigprocmask, INT(int, how, 0) HEX(unsigned long, nset, 1) INT(size_t, sigsetsize, 3),
	HEX(unsigned long, oset, 2))
TDM_CALL(16, ioctl, INT(unsigned int, fd, 0) INT(unsigned int, cmd, 1) HEX(unsigned long, arg, 2),
	HEX(unsigned long, arg, 2))
TDM_CALL(17, pread64, INT(unsigned int, fd, 0) INT(size_t, count, 2) INT(long, pos, 3),
	HEX(unsigned long, buf, 1))
TDM_CALL(18, pwrite64, INT(unsigned int, fd, 0) HEX(unsigned long, buf, 1) INT(size_t, count, 2)
	INT(long, pos, 3), NONE)
TDM_CALL(19, readv, INT(unsigned long, fd, 0) HEX(unsigned long, vec, 1) INT(unsigned long, vlen, 2),
	HEX(unsigned long, vec, 1))
TDM_CALL(20, writev, INT(unsigned long, fd, 0) HEX(unsigned long, vec, 1) INT(unsigned long, vlen, 2),
	HEX(unsigned long, vec, 1))
TDM_CALL(21, access, PATH(filename, 0) INT(int, mode, 1), NONE)
TDM_CALL(22, pipe, NONE, FDS(fildes, 0))
TDM_CALL(23, select, INT(int, n, 0) HEX(unsigned long, inp, 1) HEX(unsigned long, outp, 2)
	HEX(unsigned long, exp, 3) HEX(unsigned long, tvp, 4), HEX(unsigned long, tvp, 4))
TDM_CALL(24, sched_yield, NONE, NONE)
TDM_CALL(25, mremap, HEX(unsigned long, addr, 0) INT(unsigned long, old_len, 1)
	INT(unsigned long, new_len, 2) INT(unsigned long, flags, 3) HEX(unsigned long, new_addr, 4), NONE)
TDM_CALL(28, madvise, HEX(unsigned long, start, 0) INT(size_t, len_in, 1) INT(int, behavior, 2), NONE)
TDM_CALL(32, dup, INT(unsigned int, fildes, 0), NONE)
TDM_CALL(33, dup2, INT(unsigned int, oldfd, 0) INT(unsigned int, newfd, 1), NONE)
TDM_CALL(35, nanosleep, HEX(unsigned long, rqtp, 0), HEX(unsigned long, rmtp, 1))
TDM_CALL(39, getpid, NONE, NONE)
TDM_CALL(40, sendfile64, INT(int, out_fd, 0) INT(int, in_fd, 1) HEX(unsigned long, offset, 2)
	INT(size_t, count, 3), HEX(unsigned long, offset, 2))
TDM_CALL(41, socket, INT(int, family, 0) INT(int, type, 1) INT(int, protocol, 2), NONE)
TDM_CALL(42, connect, INT(int, fd, 0) HEX(unsigned long, uservaddr, 1) INT(int, addrlen, 2), NONE)
TDM_CALL(43, accept, INT(int, fd, 0) HEX(unsigned long, upeer_sockaddr, 1),
	HEX(unsigned long, upeer_addrlen, 2))
TDM_CALL(44, sendto, INT(int, fd, 0) HEX(unsigned long, buff, 1) INT(size_t, len, 2)
	INT(unsigned int, flags, 3) HEX(unsigned long, addr, 4) INT(int, addr_len, 5), NONE)
TDM_CALL(45, recvfrom, INT(int, fd, 0) INT(size_t, size, 2) INT(unsigned int, flags, 3)
	HEX(unsigned long, addr_len, 5),
	HEX(unsigned long, ubuf, 1) HEX(unsigned long, addr, 4) HEX(unsigned long, addr_len, 5))
TDM_CALL(46, sendmsg, INT(int, fd, 0) HEX(unsigned long, msg, 1) INT(unsigned int, flags, 2), NONE)
TDM_CALL(47, recvmsg, INT(int, fd, 0) HEX(unsigned long, msg, 1) INT(unsigned int, flags, 2),
	HEX(unsigned long, msg, 1))
TDM_CALL(48, shutdown, INT(int, fd, 0) INT(int, how, 1), NONE)
TDM_CALL(49, bind, INT(int, fd, 0) HEX(unsigned long, umyaddr, 1) INT(int, addrlen, 2), NONE)
TDM_CALL(50, listen, INT(int, fd, 0) INT(int, backlog, 1), NONE)
TDM_CALL(51, getsockname, INT(int, fd, 0) HEX(unsigned long, usockaddr_len, 2),
	HEX(unsigned long, usockaddr, 1) HEX(unsigned long, usockaddr_len, 2))
TDM_CALL(53, socketpair, INT(int, family, 0) INT(int, type, 1) INT(int, protocol, 2), FDS(socket, 3))
TDM_CALL(54, setsockopt, INT(int, fd, 0) INT(int, level, 1) INT(int, optname, 2)
	HEX(unsigned long, optval, 3) INT(int, optlen, 4), NONE)
TDM_CALL(55, getsockopt, INT(int, fd, 0) INT(int, level, 1) INT(int, optname, 2)
	HEX(unsigned long, optlen, 4), HEX(unsigned long, optval, 3) HEX(unsigned long, optlen, 4))
TDM_CALL(56, clone, HEX(unsigned long, clone_flags, 0) HEX(unsigned long, newsp, 1)
	HEX(unsigned long, parent_tid, 2) HEX(unsigned long, child_tid, 3), NONE)
TDM_CALL(57, fork, NONE, NONE)
TDM_CALL(58, vfork, NONE, NONE)
TDM_CALL(59, execve, PATH(filename, 0) HEX(unsigned long, argv, 1) HEX(unsigned long, envp, 2), NONE)
TDM_CALL(60, exit, INT(int, error_code, 0), NONE)
TDM_CALL(61, wait4, INT(int, upid, 0) INT(int, options, 2),
	HEX(unsigned long, stat_addr, 1) HEX(unsigned long, ru, 3))
TDM_CALL(62, kill, INT(int, pid, 0) INT(int, sig, 1), NONE)
TDM_CALL(63, newuname, NONE, HEX(unsigned long, name, 0))
TDM_CALL(72, fcntl, INT(unsigned int, fd, 0) INT(unsigned int, cmd, 1) HEX(unsigned long, arg, 2),
	HEX(unsigned long, arg, 2))
TDM_CALL(73, flock, INT(unsigned int, fd, 0) INT(unsigned int, cmd, 1), NONE)
TDM_CALL(74, fsync, INT(unsigned int, fd, 0), NONE)
TDM_CALL(77, ftruncate, INT(unsigned int, fd, 0) INT(unsigned long, length, 1), NONE)
TDM_CALL(79, getcwd, INT(unsigned long, size, 1), HEX(unsigned long, buf, 0))
TDM_CALL(80, chdir, PATH(filename, 0), NONE)
TDM_CALL(82, rename, PATH(oldname, 0) PATH(newname, 1), NONE)
TDM_CALL(83, mkdir, PATH(pathname, 0) INT(unsigned short, mode, 1), NONE)
TDM_CALL(84, rmdir, PATH(pathname, 0), NONE)
TDM_CALL(87, unlink, PATH(pathname, 0), NONE)
TDM_CALL(88, symlink, PATH(oldname, 0) PATH(newname, 1), NONE)
TDM_CALL(89, readlink, PATH(path, 0) INT(int, bufsiz, 2), HEX(unsigned long, buf, 1))
TDM_CALL(90, chmod, PATH(filename, 0) INT(unsigned short, mode, 1), NONE)
TDM_CALL(95, umask, INT(int, mask, 0), NONE)
TDM_CALL(102, getuid, NONE, NONE)
TDM_CALL(104, getgid, NONE, NONE)
TDM_CALL(107, geteuid, NONE, NONE)
TDM_CALL(108, getegid, NONE, NONE)
TDM_CALL(110, getppid, NONE, NONE)
TDM_CALL(157, prctl, INT(int, option, 0) HEX(unsigned long, arg2, 1) HEX(unsigned long, arg3, 2)
	HEX(unsigned long, arg4, 3) HEX(unsigned long, arg5, 4), HEX(unsigned long, arg2, 1))
TDM_CALL(186, gettid, NONE, NONE)
TDM_CALL(202, futex, HEX(unsigned long, uaddr, 0) INT(int, op, 1) INT(unsigned int, val, 2)
	HEX(unsigned long, utime, 3) HEX(unsigned long, uaddr2, 4) INT(unsigned int, val3, 5),
	HEX(unsigned long, uaddr, 0) HEX(unsigned long, uaddr2, 4))
TDM_CALL(217, getdents64, INT(unsigned int, fd, 0) INT(unsigned int, count, 2),
	HEX(unsigned long, dirent, 1))
TDM_CALL(230, clock_nanosleep, INT(int, which_clock, 0) INT(int, flags, 1) HEX(unsigned long, rqtp, 2),
	HEX(unsigned long, rmtp, 3))
TDM_CALL(231, exit_group, INT(int, error_code, 0), NONE)
TDM_CALL(232, epoll_wait, INT(int, epfd, 0) INT(int, maxevents, 2) INT(int, timeout, 3),
	HEX(unsigned long, events, 1))
TDM_CALL(233, epoll_ctl, INT(int, epfd, 0) INT(int, op_enum, 1) INT(int, fd, 2)
	HEX(unsigned long, event, 3), NONE)
TDM_CALL(234, tgkill, INT(int, tgid, 0) INT(int, pid, 1) INT(int, sig, 2), NONE)
TDM_CALL(247, waitid, INT(int, which, 0) INT(int, upid, 1) INT(int, options, 3),
	HEX(unsigned long, infop, 2) HEX(unsigned long, ru, 4))
TDM_CALL(257, openat, INT(int, dfd, 0) PATH(filename, 1) INT(int, flags, 2) INT(unsigned short, mode, 3),
	NONE)
TDM_CALL(258, mkdirat, INT(int, dfd, 0) PATH(pathname, 1) INT(unsigned short, mode, 2), NONE)
TDM_CALL(262, newfstatat, INT(int, dfd, 0) PATH(filename, 1) INT(int, flag, 3),
	HEX(unsigned long, statbuf, 2))
TDM_CALL(263, unlinkat, INT(int, dfd, 0) PATH(pathname, 1) INT(int, flag, 2), NONE)
TDM_CALL(267, readlinkat, INT(int, dfd, 0) PATH(pathname, 1) INT(int, bufsiz, 3),
	HEX(unsigned long, buf, 2))
TDM_CALL(269, faccessat, INT(int, dfd, 0) PATH(filename, 1) INT(int, mode, 2), NONE)
TDM_CALL(270, pselect6, INT(int, n, 0) HEX(unsigned long, inp, 1) HEX(unsigned long, outp, 2)
	HEX(unsigned long, exp, 3) HEX(unsigned long, tvp, 4) HEX(unsigned long, sig, 5),
	HEX(unsigned long, tvp, 4))
TDM_CALL(271, ppoll, HEX(unsigned long, ufds, 0) INT(unsigned int, nfds, 1) HEX(unsigned long, tsp, 2)
	HEX(unsigned long, sigmask, 3) INT(size_t, sigsetsize, 4), NONE)
TDM_CALL(281, epoll_pwait, INT(int, epfd, 0) INT(int, maxevents, 2) INT(int, timeout, 3)
	HEX(unsigned long, sigmask, 4) INT(size_t, sigsetsize, 5), HEX(unsigned long, events, 1))
TDM_CALL(288, accept4, INT(int, fd, 0) HEX(unsigned long, upeer_sockaddr, 1) HEX(int, flags, 3),
	HEX(unsigned long, upeer_addrlen, 2))
TDM_CALL(290, eventfd2, INT(unsigned int, count, 0) INT(int, flags, 1), NONE)
TDM_CALL(291, epoll_create1, INT(int, flags, 0), NONE)
TDM_CALL(292, dup3, INT(unsigned int, oldfd, 0) INT(unsigned int, newfd, 1) INT(int, flags, 2), NONE)
TDM_CALL(293, pipe2, INT(int, flags, 1), FDS(fildes, 0))
TDM_CALL(302, prlimit64, INT(int, pid, 0) INT(unsigned int, resource, 1) HEX(unsigned long, new_rlim, 2),
	HEX(unsigned long, old_rlim, 3))
TDM_CALL(316, renameat2, INT(int, olddfd, 0) PATH(oldname, 1) INT(int, newdfd, 2) PATH(newname, 3)
	INT(unsigned int, flags, 4), NONE)
TDM_CALL(318, getrandom, HEX(unsigned long, ubuf, 0) INT(size_t, len, 1) INT(unsigned int, flags, 2), NONE)
TDM_CALL(332, statx, INT(int, dfd, 0) PATH(filename, 1) INT(unsigned int, flags, 2)
	INT(unsigned int, mask, 3) HEX(unsigned long, buffer, 4), NONE)
TDM_CALL(426, io_uring_enter, INT(unsigned int, fd, 0) INT(unsigned int, to_submit, 1)
	INT(unsigned int, min_complete, 2) INT(unsigned int, flags, 3) HEX(unsigned long, argp, 4)
	INT(size_t, argsz, 5), NONE)
TDM_CALL(435, clone3, HEX(unsigned long, uargs, 0) INT(size_t, size, 1), NONE)
/* clang-format on */
