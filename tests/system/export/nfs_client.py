#!/usr/bin/python3
"""nfs_client.py URL MOUNT - what an NFS client sees of an exported traxfs, by
libnfs (no NFS in the kernel is needed).  MOUNT is where the same directory is
mounted locally.  For "remount" on its standard output the caller takes the
server and the mount away and brings them back, and answers with a line."""
import ctypes
import errno
import os
import random
import sys

lib = ctypes.CDLL("libnfs.so.13")
lib.nfs_init_context.restype = ctypes.c_void_p
lib.nfs_parse_url_dir.restype = ctypes.c_void_p
lib.nfs_get_error.restype = ctypes.c_char_p
O_CREAT, O_RDWR = os.O_CREAT, os.O_RDWR


class Url(ctypes.Structure):
    _fields_ = [("server", ctypes.c_char_p), ("path", ctypes.c_char_p),
                ("file", ctypes.c_char_p)]


class Nfs:
    def __init__(self, url):
        self.nfs = ctypes.c_void_p(lib.nfs_init_context())
        parsed = lib.nfs_parse_url_dir(self.nfs, url.encode())
        parsed = ctypes.cast(parsed, ctypes.POINTER(Url)).contents
        self.check(lib.nfs_mount(self.nfs, parsed.server, parsed.path),
                   "mount")

    def check(self, rc, what):
        if rc < 0:
            raise OSError(-rc, "%s: %s: %s" % (
                what, os.strerror(-rc),
                (lib.nfs_get_error(self.nfs) or b"").decode()))
        return rc

    def do(self, name, *args):
        args = [a.encode() if isinstance(a, str) else a for a in args]
        return self.check(getattr(lib, "nfs_" + name)(self.nfs, *args), name)

    def open(self, path, flags):
        handle = ctypes.c_void_p()
        if flags & O_CREAT:
            self.do("creat", path, 0o644, ctypes.byref(handle))
        else:
            self.do("open", path, flags, ctypes.byref(handle))
        return handle

    def write(self, handle, offset, data):
        n = self.do("pwrite", handle, ctypes.c_uint64(offset),
                    ctypes.c_uint64(len(data)), data)
        assert n == len(data), n

    def read(self, handle, offset, n):
        buf = ctypes.create_string_buffer(n)
        got = self.do("pread", handle, ctypes.c_uint64(offset),
                      ctypes.c_uint64(n), buf)
        return buf.raw[:got]


def content(seed, n):
    return random.Random(seed).randbytes(n)


def refused(codes, function, *args):
    try:
        function(*args)
    except OSError as e:
        assert e.errno in codes, e
        return
    assert False, "not refused"


url, mount = sys.argv[1:]
nfs = Nfs(url)
PIECE = 1 << 17

# Many files by the client, seen by the server, and the other way round.
nfs.do("mkdir", "/many")
for i in range(300):
    f = nfs.open("/many/%d" % i, O_CREAT)
    nfs.write(f, 0, content(i, 100 * i))
    nfs.do("close", f)
for i in range(300):
    with open("%s/many/%d" % (mount, i), "rb") as f:
        assert f.read() == content(i, 100 * i), i
with open(mount + "/local", "wb") as f:
    f.write(content("local", 3 * PIECE))
held = nfs.open("/local", O_RDWR)
assert nfs.read(held, 0, PIECE) == content("local", 3 * PIECE)[:PIECE]
print("300 files each way equal", file=sys.stderr)

# Names.
nfs.do("rename", "/many/1", "/many/one")
nfs.do("unlink", "/many/2")
nfs.do("link", "/many/3", "/many/three")
nfs.do("symlink", "three", "/many/way")
assert not os.path.exists(mount + "/many/1")
assert os.stat(mount + "/many/3").st_nlink == 2
assert os.readlink(mount + "/many/way") == "three"
refused([errno.ENOENT], nfs.open, "/many/2", O_RDWR)

# A large file, made durable by the client.
big = nfs.open("/big", O_CREAT)
for i in range(256):
    nfs.write(big, i * PIECE, content("big%d" % i, PIECE))
nfs.do("fsync", big)
gone = nfs.open("/many/5", O_RDWR)

# Handles that were held all the time, behind another daemon of both kinds, by
# another connection.
print("remount", flush=True)
assert sys.stdin.readline().strip() == "over"
nfs = Nfs(url)
assert nfs.read(held, PIECE, 2 * PIECE) == \
    content("local", 3 * PIECE)[PIECE:], "the handle leads elsewhere"
nfs.write(held, 7, b"again")
with open(mount + "/local", "rb") as f:
    assert f.read(12)[7:] == b"again"
for i in range(256):
    assert nfs.read(big, i * PIECE, PIECE) == content("big%d" % i, PIECE), i
print("handles held across the remount lead where they did", file=sys.stderr)

# A file that is gone does not come back as another one.
os.unlink(mount + "/many/5")
for i in range(50):
    with open("%s/many/new%d" % (mount, i), "wb") as f:
        f.write(b"new")
# libnfs 4 says EFAULT for a status of the server that it does not translate.
refused([errno.ESTALE, errno.EFAULT], nfs.read, gone, 0, 100)
print("the handle of a deleted file is stale", file=sys.stderr)
