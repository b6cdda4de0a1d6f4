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

// maxSecretFile is the largest file of a secret, in bytes. The largest is a list of SMPP binds.
const maxSecretFile = 1 << 20

// others are the permissions by which users other than the owner may read or change a file. The group may read it.
const others fs.FileMode = 0o027

// ReadSecretFile reads a regular file of at most 1 MB. It does not wait for the writer of a named pipe.
func ReadSecretFile(path string) (text []byte, err error) {
	if _, err := statSecretFile(path); err != nil {
		return nil, err
	}
	file, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	info, err := file.Stat() // the path may name another file since
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

// CheckSecretFile refuses a file that is not regular, or that others on the machine can read or change. It follows a symbolic
// link, as container platforms and renewals of certificates make them.
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

// CheckOwnFile refuses a path at which there is anything but a regular file. A symbolic link is none: it may lead to
// another user's file. A path without a file passes.
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
