package app

import (
	"fmt"
	"syscall"
	"unsafe"

	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"
)

// refuseSYN makes the kernel drop every new SYN at a listening socket. A handshake that has begun still completes,
// and its connection can be accepted. The client sends a dropped SYN again after a second.
func refuseSYN(socket syscall.Conn) error {
	const flags, syn = 13, 0x02 // a byte of the TCP header (RFC 9293, 3.1), at which a filter of a TCP socket begins
	program, err := bpf.Assemble([]bpf.Instruction{
		bpf.LoadAbsolute{Off: flags, Size: 1},
		bpf.JumpIf{Cond: bpf.JumpBitsSet, Val: syn, SkipFalse: 1},
		bpf.RetConstant{Val: 0},
		bpf.RetConstant{Val: 1 << 16},
	})
	if err != nil {
		return fmt.Errorf("assemble the filter: %w", err)
	}
	filter := make([]unix.SockFilter, len(program))
	for i, one := range program {
		filter[i] = unix.SockFilter{Code: one.Op, Jt: one.Jt, Jf: one.Jf, K: one.K}
	}
	return onSocket(socket, func(fd int) error {
		return unix.SetsockoptSockFprog(fd, unix.SOL_SOCKET, unix.SO_ATTACH_FILTER, &unix.SockFprog{Len: uint16(len(filter)), Filter: unsafe.SliceData(filter)})
	})
}

// backlog returns how many connections wait at a listening socket to be accepted.
func backlog(socket syscall.Conn) (waiting int, err error) {
	err = onSocket(socket, func(fd int) error {
		info, err := unix.GetsockoptTCPInfo(fd, unix.IPPROTO_TCP, unix.TCP_INFO)
		if err == nil {
			waiting = int(info.Unacked) // sk_ack_backlog in the state LISTEN (Linux, net/ipv4/tcp.c, tcp_get_info)
		}
		return err
	})
	return waiting, err
}

// onSocket calls a function with the descriptor of a socket.
func onSocket(socket syscall.Conn, do func(fd int) error) error {
	raw, err := socket.SyscallConn()
	if err != nil {
		return fmt.Errorf("access the listening socket: %w", err)
	}
	var done error
	if err := raw.Control(func(fd uintptr) { done = do(int(fd)) }); err != nil {
		return fmt.Errorf("access the listening socket: %w", err)
	}
	if done != nil {
		return fmt.Errorf("read or set an option of the listening socket: %w", done)
	}
	return nil
}
