"""Copies the contents of files, without copying at all where the file system can share them."""

import errno
import fcntl
import os

FICLONE = 0x40049409
CANNOT = {errno.EXDEV, errno.EINVAL, errno.ENOSYS, errno.EOPNOTSUPP, errno.ENOTTY, errno.EBADF, errno.EPERM}


def copy_bytes(source: int, target: int, size: int, start: int = 0) -> int:
    """Copy at most `size` bytes from `start` on to where the target stands, which then stands behind them.

    A whole file is copied as a reflink where the file system can. Returns how many bytes were copied.
    """
    if size == 0:
        return 0
    if start == 0 and os.lseek(target, 0, os.SEEK_CUR) == 0:
        try:
            fcntl.ioctl(target, FICLONE, source)
            os.ftruncate(target, min(size, os.fstat(target).st_size))
            return os.lseek(target, 0, os.SEEK_END)
        except OSError as error:
            if error.errno not in CANNOT:
                raise
    done = 0
    while done < size:
        try:
            count = os.copy_file_range(source, target, size - done, offset_src=start + done)
        except OSError as error:
            if error.errno not in CANNOT or done:
                raise
            return _send_bytes(source, target, size, start)
        if count == 0:
            break
        done += count
    return done


def _send_bytes(source: int, target: int, size: int, start: int) -> int:
    done = 0
    while done < size and (count := os.sendfile(target, source, start + done, size - done)):
        done += count
    return done
