package config

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"runtime"
	"syscall"
)

// maxSecretFile is the maximum size of a file with a secret, in bytes. The largest such file is a list of SMPP binds.
const maxSecretFile = 1 << 20

// others are the permissions that let users other than the owner read or change a file. The group may read it.
const others fs.FileMode = 0o027

// ReadSecretFile reads a regular file of at most 1 MB. It returns an error for a named pipe, and does not wait for
// its writer.
func ReadSecretFile(path string) (text []byte, err error) {
	if _, err := statSecretFile(path); err != nil {
		return nil, err
	}
	file, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	info, err := file.Stat() // the path may lead to another file by now
	if err != nil {
		return nil, err
	}
	if err := regular(path, info); err != nil {
		return nil, err
	}
	text, err = io.ReadAll(io.LimitReader(file, maxSecretFile+1))
	if err == nil && len(text) > maxSecretFile {
		err = fmt.Errorf("%s has more than %d bytes", path, maxSecretFile)
	}
	return text, err
}

// CheckSecretFile returns an error for a file that is not regular, or that other users of the machine can read or
// change. It follows symbolic links, because container platforms and certificate renewals create them.
func CheckSecretFile(path string) error {
	info, err := statSecretFile(path)
	if err != nil {
		return err
	}
	if runtime.GOOS != "windows" && info.Mode().Perm()&others != 0 {
		return fmt.Errorf("%s can be read or changed by others on this machine (its mode is %04o): chmod 600 it, and change the secret if they may have it", path, info.Mode().Perm())
	}
	return nil
}

// CheckOwnFile returns an error if the path leads to anything but a regular file. A symbolic link is refused, because
// it may lead to another user's file. A missing file is accepted.
func CheckOwnFile(path string) error {
	info, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	return regular(path, info)
}

func statSecretFile(path string) (fs.FileInfo, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	return info, regular(path, info)
}

func regular(path string, info fs.FileInfo) error {
	if !info.Mode().IsRegular() {
		return fmt.Errorf("%s is not a regular file: name a file of your own with mode 0600", path)
	}
	return nil
}
