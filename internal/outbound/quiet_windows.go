package outbound

import "net"

// quiet cannot be told here: no connection is used twice.
func quiet(net.Conn) bool { return false }
