//! Pointers of the caller: null checks, bytes, texts, and structs that know their size.
//!
//! Fed by: raw arguments. Yields: slices and values, or the failure that names the argument.
//! Never: trusts `struct_size`, or reads a byte past it.

use super::guard::{Failure, Outcome};
use super::library::{RETICK_OK, retick_result};
use crate::base::Addr;
use crate::config::RoomKey;
use std::ffi::{CStr, c_char};

/// Larger sizes are taken for garbage.
const MAX_STRUCT: u32 = 64 * 1024;

/// A struct of the header that begins with `struct_size`.
///
/// # Safety
///
/// `repr(C)`, begins with a `u32` that is its size, has no padding, and is valid for any bytes that a C caller that keeps
/// the header's contract may have there.
pub(super) unsafe trait Sized32: Copy {
    /// Its C name.
    const NAME: &'static str;
    /// What is there where the caller gives nothing.
    fn defaults() -> Self;
}

/// Refuses null.
pub(super) fn check<T>(name: &'static str, pointer: *const T) -> Outcome<()> {
    if pointer.is_null() {
        return Err(Failure::argument(format!("{name} is NULL; it must point to something")));
    }
    Ok(())
}

/// `size` bytes; null is fine when there are none.
///
/// # Safety
///
/// `pointer` is null or readable for `size` bytes, for as long as the slice is used.
pub(super) unsafe fn bytes<'a>(name: &'static str, pointer: *const u8, size: u32) -> Outcome<&'a [u8]> {
    if size == 0 {
        return Ok(&[]);
    }
    check(name, pointer)?;
    // SAFETY: not null, and readable by this function's contract.
    Ok(unsafe { std::slice::from_raw_parts(pointer, size as usize) })
}

/// A text.
///
/// # Safety
///
/// `pointer` is null or a NUL-terminated text, for as long as it is used.
pub(super) unsafe fn text<'a>(name: &'static str, pointer: *const c_char) -> Outcome<&'a str> {
    check(name, pointer)?;
    // SAFETY: not null, and NUL-terminated by this function's contract.
    let text = unsafe { CStr::from_ptr(pointer) };
    text.to_str().map_err(|_| Failure::argument(format!("{name} is not UTF-8; give text as UTF-8")))
}

/// The 32 bytes of a room.
///
/// # Safety
///
/// `pointer` is null or readable for 32 bytes.
pub(super) unsafe fn room(name: &'static str, pointer: *const u8) -> Outcome<RoomKey> {
    check(name, pointer)?;
    // SAFETY: not null, and readable for 32 bytes by this function's contract.
    Ok(RoomKey(unsafe { pointer.cast::<[u8; 32]>().read_unaligned() }))
}

/// An address of the game's own transport.
///
/// # Safety
///
/// `pointer` is null or readable for `size` bytes.
pub(super) unsafe fn custom_address(name: &'static str, pointer: *const u8, size: u32) -> Outcome<Addr> {
    check(name, pointer)?;
    if !(1..=64).contains(&size) {
        return Err(Failure::argument(format!("{name} has {size} bytes; use 1 to 64")));
    }
    // SAFETY: not null, and readable by this function's contract.
    let bytes = unsafe { bytes(name, pointer, size) }?;
    Addr::opaque(bytes).ok_or_else(|| Failure::argument(format!("{name} is no address")))
}

/// Copies as much of a text as fits, and a NUL behind it.
///
/// # Safety
///
/// `buffer` is null or writable for `capacity` bytes.
pub(super) unsafe fn copy_bytes_cut(text: &[u8], buffer: *mut c_char, capacity: u32) {
    if buffer.is_null() || capacity == 0 {
        return;
    }
    let mut fits = text.len().min(capacity as usize - 1);
    // Half a character is none.
    while fits > 0 && fits < text.len() && text[fits] & 0xC0 == 0x80 {
        fits -= 1;
    }
    // SAFETY: `fits` < `capacity`, writable by this function's contract; the text is not in the caller's buffer.
    unsafe {
        std::ptr::copy_nonoverlapping(text.as_ptr().cast(), buffer, fits);
        buffer.add(fits).write(0);
    }
}

/// Copies a text out and reports its length.
///
/// # Safety
///
/// `buffer` is null or writable for `capacity` bytes, `out_len` is null or writable.
pub(super) unsafe fn copy_text(
    text: &str,
    buffer: *mut c_char,
    capacity: u32,
    out_len: *mut u32,
) -> Outcome<retick_result> {
    if capacity > 0 {
        check("buffer", buffer)?;
    }
    // SAFETY: by this function's contract.
    unsafe {
        copy_bytes_cut(text.as_bytes(), buffer, capacity);
        if !out_len.is_null() {
            out_len.write_unaligned(text.len() as u32);
        }
    }
    if text.len() >= capacity as usize {
        return Err(Failure::small(format!("capacity is {capacity}; the text needs {}", text.len() + 1)));
    }
    Ok(RETICK_OK)
}

fn check_size<T: Sized32>(name: &'static str, size: u32) -> Outcome<usize> {
    if size < 8 || !size.is_multiple_of(4) || size > MAX_STRUCT {
        return Err(Failure::argument(format!(
            "{name} says that its size is {size}, which no {} ever had; set struct_size to sizeof({})",
            T::NAME,
            T::NAME
        )));
    }
    Ok(size as usize)
}

/// Reads what the caller's struct has; the rest stays at its default.
///
/// # Safety
///
/// `pointer` is null or readable for 4 bytes and for as many as those say.
pub(super) unsafe fn read_struct<T: Sized32>(name: &'static str, pointer: *const T) -> Outcome<T> {
    check(name, pointer)?;
    // SAFETY: readable for 4 bytes.
    let size = check_size::<T>(name, unsafe { pointer.cast::<u32>().read_unaligned() })?;
    let mut value = T::defaults();
    // SAFETY: readable for `size` bytes, and `value` is as large as the smaller of both; any bytes are valid for `T`.
    unsafe {
        std::ptr::copy_nonoverlapping(
            pointer.cast::<u8>(),
            std::ptr::from_mut(&mut value).cast::<u8>(),
            size.min(size_of::<T>()),
        );
    }
    Ok(value)
}

/// How large the caller's out-struct is.
///
/// # Safety
///
/// `pointer` is null or readable for 4 bytes.
pub(super) unsafe fn out_struct_size<T: Sized32>(name: &'static str, pointer: *const T) -> Outcome<usize> {
    check(name, pointer)?;
    // SAFETY: readable for 4 bytes.
    check_size::<T>(name, unsafe { pointer.cast::<u32>().read_unaligned() })
}

/// Writes as much as the caller's struct has room for; what it has and we do not know becomes 0. Its size stays.
///
/// # Safety
///
/// `pointer` is writable for `size` bytes, at least 4.
pub(super) unsafe fn write_struct<T: Sized32>(pointer: *mut T, size: usize, value: T) {
    // SAFETY: writable for `size` bytes, and begins with its size.
    unsafe {
        write_padded(pointer.cast(), size, value);
        pointer.cast::<u32>().write_unaligned(size as u32);
    }
}

/// Writes a value into `size` bytes: cut, or with zeros behind it.
///
/// # Safety
///
/// `pointer` is writable for `size` bytes, and `T` has no padding.
pub(super) unsafe fn write_padded<T: Copy>(pointer: *mut u8, size: usize, value: T) {
    let known = size.min(size_of::<T>());
    // SAFETY: `known` bytes are in both, and the rest is the caller's.
    unsafe {
        std::ptr::copy_nonoverlapping(std::ptr::from_ref(&value).cast::<u8>(), pointer, known);
        pointer.add(known).write_bytes(0, size - known);
    }
}

/// Fills a struct with its defaults.
///
/// # Safety
///
/// `pointer` is null or writable for `size` bytes.
pub(super) unsafe fn init_struct<T: Sized32>(
    name: &'static str,
    pointer: *mut T,
    size: u32,
) -> Outcome<retick_result> {
    check(name, pointer)?;
    let size = check_size::<T>("struct_size", size)?;
    // SAFETY: not null, and writable by this function's contract.
    unsafe { write_struct(pointer, size, T::defaults()) };
    Ok(RETICK_OK)
}
