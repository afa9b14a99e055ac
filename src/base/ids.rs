//! Names of peers and slots, and small sets of them.
//!
//! A peer index is a member's place in the roster; a slot is the seat whose input it is. Both are below 16.
//! Never: names an address or a key; those belong to the roster.

use crate::base::limits::{MAX_PEERS, MAX_SLOTS};
use std::fmt;
use std::marker::PhantomData;

/// A member's place in the roster, `0..MAX_PEERS`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PeerIndex(u8);

/// A seat whose input it is, `0..MAX_SLOTS`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Slot(u8);

macro_rules! index {
    ($name:ident, $bound:expr) => {
        impl $name {
            /// The index, or nothing when it is out of range.
            pub const fn new(index: u8) -> Option<Self> {
                if (index as usize) < $bound { Some(Self(index)) } else { None }
            }

            /// As a number.
            pub const fn get(self) -> u8 {
                self.0
            }

            /// As an array index, always below the bound.
            pub const fn index(self) -> usize {
                self.0 as usize
            }

            /// Every index, in order.
            pub fn all() -> impl Iterator<Item = Self> {
                (0..$bound as u8).map(Self)
            }
        }

        impl From<$name> for u8 {
            fn from(index: $name) -> u8 {
                index.0
            }
        }

        impl SmallIndex for $name {
            fn from_bit(bit: u8) -> Self {
                Self(bit)
            }
            fn bit(self) -> u8 {
                self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{}", self.0)
            }
        }
    };
}
index!(PeerIndex, MAX_PEERS);
index!(Slot, MAX_SLOTS);

/// An index below 16, so that a set of them fits 16 bits.
pub trait SmallIndex: Copy {
    /// The index of a bit, `0..16`.
    fn from_bit(bit: u8) -> Self;
    /// The bit of an index, `0..16`.
    fn bit(self) -> u8;
}

/// A set of small indices; iterates in ascending order.
pub struct IndexSet<T> {
    bits: u16,
    of: PhantomData<T>,
}

/// A set of peers.
pub type PeerSet = IndexSet<PeerIndex>;
/// A set of slots.
pub type SlotSet = IndexSet<Slot>;

impl<T: SmallIndex> IndexSet<T> {
    /// No member.
    pub const EMPTY: Self = Self::from_bits(0);

    /// From a bit mask: bit `i` set means that index `i` is a member.
    pub const fn from_bits(bits: u16) -> Self {
        Self { bits, of: PhantomData }
    }

    /// As a bit mask.
    pub const fn bits(self) -> u16 {
        self.bits
    }

    /// Whether nothing is in it.
    pub const fn is_empty(self) -> bool {
        self.bits == 0
    }

    /// How many members it has.
    pub const fn len(self) -> usize {
        self.bits.count_ones() as usize
    }

    /// Whether `index` is a member.
    pub fn contains(self, index: T) -> bool {
        self.bits >> index.bit() & 1 == 1
    }

    /// Adds `index`; says whether it was new.
    pub fn insert(&mut self, index: T) -> bool {
        let before = self.bits;
        self.bits |= 1 << index.bit();
        self.bits != before
    }

    /// Takes `index` out; says whether it was in.
    pub fn remove(&mut self, index: T) -> bool {
        let before = self.bits;
        self.bits &= !(1 << index.bit());
        self.bits != before
    }

    /// With `index` in it.
    #[must_use]
    pub fn with(mut self, index: T) -> Self {
        self.insert(index);
        self
    }

    /// Without `index`.
    #[must_use]
    pub fn without(mut self, index: T) -> Self {
        self.remove(index);
        self
    }

    /// Members of either.
    #[must_use]
    pub const fn union(self, other: Self) -> Self {
        Self::from_bits(self.bits | other.bits)
    }

    /// Members of both.
    #[must_use]
    pub const fn intersection(self, other: Self) -> Self {
        Self::from_bits(self.bits & other.bits)
    }

    /// Members of this one that are not in `other`.
    #[must_use]
    pub const fn difference(self, other: Self) -> Self {
        Self::from_bits(self.bits & !other.bits)
    }

    /// Whether every member is also in `other`.
    pub const fn is_subset(self, other: Self) -> bool {
        self.bits & !other.bits == 0
    }

    /// Its members in order, and how many they are.
    pub fn to_array(self) -> ([T; 16], usize) {
        let mut members = [T::from_bit(0); 16];
        for (place, member) in members.iter_mut().zip(self) {
            *place = member;
        }
        (members, self.len())
    }

    /// The lowest member.
    pub fn first(self) -> Option<T> {
        if self.bits == 0 { None } else { Some(T::from_bit(self.bits.trailing_zeros() as u8)) }
    }
}

impl<T> Clone for IndexSet<T> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<T> Copy for IndexSet<T> {}
impl<T> Default for IndexSet<T> {
    fn default() -> Self {
        Self { bits: 0, of: PhantomData }
    }
}
impl<T> PartialEq for IndexSet<T> {
    fn eq(&self, other: &Self) -> bool {
        self.bits == other.bits
    }
}
impl<T> Eq for IndexSet<T> {}
impl<T: SmallIndex + fmt::Debug> fmt::Debug for IndexSet<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(*self).finish()
    }
}
impl<T: SmallIndex> IntoIterator for IndexSet<T> {
    type Item = T;
    type IntoIter = IndexSetIter<T>;
    fn into_iter(self) -> Self::IntoIter {
        IndexSetIter(self)
    }
}
impl<T: SmallIndex> FromIterator<T> for IndexSet<T> {
    fn from_iter<I: IntoIterator<Item = T>>(members: I) -> Self {
        let mut set = Self::EMPTY;
        for member in members {
            set.insert(member);
        }
        set
    }
}

/// Members of an [`IndexSet`], ascending.
pub struct IndexSetIter<T>(IndexSet<T>);

impl<T: SmallIndex> Iterator for IndexSetIter<T> {
    type Item = T;
    fn next(&mut self) -> Option<T> {
        let first = self.0.first()?;
        self.0.remove(first);
        Some(first)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_iterates_in_ascending_order() {
        let set: PeerSet = [9, 0, 15].into_iter().filter_map(PeerIndex::new).collect();
        assert_eq!(set.into_iter().map(PeerIndex::get).collect::<Vec<_>>(), [0, 9, 15]);
        assert_eq!(set.len(), 3);
        let (members, count) = set.to_array();
        assert_eq!(members[..count].iter().map(|p| p.get()).collect::<Vec<_>>(), [0, 9, 15]);
        assert_eq!(PeerIndex::new(16), None);
    }
}
