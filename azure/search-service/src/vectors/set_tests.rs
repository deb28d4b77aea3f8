//! Tests of batches, views, maintenance and concurrency.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use super::*;
use crate::vectors::{AllowedDocuments, NearestQuery};

fn settings(hnsw: bool) -> VectorSettings {
    let parameters = HnswParameters { m: 4, ef_construction: 100, ef_search: 100 };
    VectorSettings { metric: VectorMetric::Euclidean, length: 4, hnsw: hnsw.then_some(parameters) }
}

/// Points on a curve: adjacent numbers are adjacent in space.
fn place(number: u64) -> [f32; 4] {
    let at = number as f32;
    [at, (at / 50.0).sin(), (at / 30.0).cos(), 1.0]
}

fn fill(set: &VectorSet, numbers: impl Iterator<Item = u64>) {
    let mut batch = set.batch();
    for number in numbers {
        batch.insert(number, &place(number)).unwrap();
    }
    set.apply(batch);
}

fn nearest(vector: &[f32], k: usize) -> NearestQuery<'_> {
    NearestQuery { vector, k, exhaustive: false, ef: None, look: None, allowed: None }
}

fn numbers(hits: &[(u64, f32)]) -> Vec<u64> {
    hits.iter().map(|hit| hit.0).collect()
}

fn segments(set: &VectorSet) -> Vec<(usize, bool)> {
    set.view().0.parts.iter().map(|part| (part.segment.len(), part.segment.graph().is_some())).collect()
}

#[test]
fn finds_the_nearest_with_their_distances() {
    let set = VectorSet::new(settings(true));
    for number in [5, 9, 1] {
        set.insert(number, &[number as f32, 0.0, 0.0, 0.0]).unwrap();
    }
    let hits = set.view().search(&nearest(&[4.0, 0.0, 0.0, 0.0], 2));
    assert_eq!(hits, [(5, 1.0), (1, 3.0)]);
    assert_eq!(set.view().search(&nearest(&[4.0, 0.0, 0.0, 0.0], 50)).len(), 3);
    assert!(set.view().search(&nearest(&[4.0], 2)).is_empty());
}

#[test]
fn equally_near_documents_are_ordered_by_number() {
    let set = VectorSet::new(settings(true));
    for number in [8, 3, 7, 1, 5] {
        set.insert(number, &[1.0; 4]).unwrap();
    }
    assert_eq!(numbers(&set.view().search(&nearest(&[0.0; 4], 3))), [1, 3, 5]);
}

#[test]
fn an_insert_replaces_and_a_remove_deletes() {
    let set = VectorSet::new(settings(true));
    fill(&set, 0..100);
    set.insert(10, &place(500)).unwrap();
    let view = set.remove(11);
    assert_eq!(view.len(), 99);
    assert!(view.contains(10) && !view.contains(11));
    let hits = view.search(&nearest(&place(10), 3));
    assert_eq!(numbers(&hits), [9, 8, 12]);
    assert_eq!(numbers(&view.search(&nearest(&place(499), 1))), [10]);
    // Removing a missing vector changes nothing.
    assert_eq!(set.remove(1000).len(), 99);
}

#[test]
fn the_last_change_in_a_batch_is_used() {
    let set = VectorSet::new(settings(true));
    let mut batch = set.batch();
    batch.insert(1, &place(1)).unwrap();
    batch.insert(1, &place(7)).unwrap();
    batch.insert(2, &place(2)).unwrap();
    batch.remove(2);
    batch.remove(3);
    batch.insert(3, &place(3)).unwrap();
    let view = set.apply(batch);
    assert_eq!(numbers(&view.search(&nearest(&place(7), 5))), [1, 3]);
}

#[test]
fn vectors_of_the_wrong_length_or_not_finite_are_rejected() {
    let set = VectorSet::new(settings(true));
    assert!(set.insert(1, &[1.0]).unwrap_err().message.contains("must have 4 numbers"));
    assert!(set.insert(1, &[1.0, f32::NAN, 0.0, 0.0]).unwrap_err().message.contains("Number 1"));
    assert!(set.view().is_empty());
}

#[test]
fn a_view_never_changes() {
    let set = VectorSet::with_graph_threshold(settings(true), 50);
    fill(&set, 0..100);
    let before = set.view();
    fill(&set, 100..200);
    for number in 0..50 {
        set.remove(number);
    }
    set.maintain(&|| false);
    assert_eq!((before.len(), set.view().len()), (100, 150));
    assert_eq!(numbers(&before.search(&nearest(&place(20), 1))), [20]);
    assert_eq!(numbers(&set.view().search(&nearest(&place(20), 1))), [50]);
}

#[test]
fn single_inserts_leave_few_segments() {
    let set = VectorSet::new(settings(true));
    for number in 0..500 {
        set.insert(number, &place(number)).unwrap();
    }
    assert!(segments(&set).len() <= 9, "{:?}", segments(&set));
    assert_eq!(set.view().len(), 500);
    assert_eq!(set.view().bytes(), 500 * (8 + 4 * 4));
}

#[test]
fn maintenance_joins_builds_and_compacts() {
    let set = VectorSet::with_graph_threshold(settings(true), 200);
    assert!(!set.maintain(&|| false));
    // Batches of decreasing size are not merged immediately.
    for (start, end) in [(0, 190), (190, 340), (340, 480), (480, 600)] {
        fill(&set, start..end);
    }
    assert_eq!(segments(&set), [190, 150, 140, 120].map(|count| (count, false)));
    assert!(set.maintain(&|| false));
    assert_eq!(segments(&set), [(600, true)]);
    assert!(!set.maintain(&|| false));

    let mut batch = set.batch();
    (0..300).for_each(|number| batch.remove(number));
    set.apply(batch);
    set.maintain(&|| false);
    assert_eq!(segments(&set), [(300, true)]);
    for ef in [None, Some(2)] {
        let hits = set.view().search(&NearestQuery { ef, ..nearest(&place(0), 2) });
        assert_eq!(numbers(&hits), [300, 301]);
    }
}

#[test]
fn exhaustive_sets_have_no_graph() {
    let set = VectorSet::with_graph_threshold(settings(false), 50);
    fill(&set, 0..100);
    set.maintain(&|| false);
    assert_eq!(segments(&set), [(100, false)]);
    assert_eq!(numbers(&set.view().search(&nearest(&place(40), 1))), [40]);
}

#[test]
fn four_segments_of_one_size_become_one() {
    let set = VectorSet::with_graph_threshold(settings(true), 50);
    for start in [0, 60, 120, 180] {
        // Simulates maintenance after each batch.
        fill(&set, start..start + 60);
        *set.sealed.lock().unwrap() = set.view().0.parts.len();
    }
    set.maintain(&|| false);
    assert_eq!(segments(&set), [(240, true)]);
}

#[test]
fn a_stopped_maintenance_changes_no_result() {
    let set = VectorSet::with_graph_threshold(settings(true), 50);
    fill(&set, 0..300);
    let asked = std::cell::Cell::new(0);
    set.maintain(&|| {
        asked.set(asked.get() + 1);
        asked.get() > 2
    });
    assert_eq!(segments(&set), [(300, false)]);
    assert_eq!(numbers(&set.view().search(&nearest(&place(40), 1))), [40]);
}

#[test]
fn filters_apply_to_graphs_and_scans() {
    let set = VectorSet::with_graph_threshold(settings(true), 100);
    fill(&set, 0..1500);
    set.maintain(&|| false);
    let view = set.view();
    assert_eq!(segments(&set), [(1500, true)]);
    let query = place(700);
    // Half, some, few and none, by graph or by scan, with a known or unknown count.
    for step in [2, 10, 400, 5000] {
        let test = |number: u64| number % step == 1;
        let wanted = numbers(&view.search(&NearestQuery {
            exhaustive: true,
            allowed: Some(AllowedDocuments { test: &test, at_most: None }),
            ..nearest(&query, 5)
        }));
        for at_most in [None, Some(1500 / step as usize + 1)] {
            for ef in [None, Some(5)] {
                let allowed = Some(AllowedDocuments { test: &test, at_most });
                let hits = view.search(&NearestQuery { allowed, ef, ..nearest(&query, 5) });
                assert_eq!(numbers(&hits), wanted, "every {step}, {at_most:?}, {ef:?}");
            }
        }
    }
}

#[test]
fn bits_are_packed_and_compared() {
    let set = VectorSet::new(VectorSettings { metric: VectorMetric::Hamming, length: 3, hnsw: None });
    set.insert(1, &[0.0, 0.0, 0.0]).unwrap();
    set.insert(2, &[255.0, 255.0, 255.0]).unwrap();
    set.insert(3, &[1.0, 0.0, 128.0]).unwrap();
    let hits = set.view().search(&nearest(&[1.0, 0.0, 0.0], 3));
    assert_eq!(hits, [(1, 1.0), (3, 1.0), (2, 23.0)]);
}

#[test]
fn no_search_sees_a_partial_batch_during_writes_and_maintenance() {
    const PAIRS: u64 = 120;
    let set = VectorSet::with_graph_threshold(settings(true), 64);
    let done = AtomicBool::new(false);
    let check = || {
        let view = set.view();
        let hits = view.search(&NearestQuery { exhaustive: true, ..nearest(&place(0), 10_000) });
        let seen: BTreeSet<u64> = hits.iter().map(|hit| hit.0).collect();
        assert_eq!(seen.len(), hits.len(), "a document was found twice");
        assert_eq!(seen.len(), view.len());
        // Each batch writes both numbers of a pair to the same point, or removes both.
        for pair in seen.iter().map(|number| number / 2).collect::<BTreeSet<_>>() {
            assert!(seen.contains(&(2 * pair)) && seen.contains(&(2 * pair + 1)), "half of pair {pair}");
        }
        // With so few candidates a graph is walked if there is one.
        let walked = view.search(&NearestQuery { ef: Some(1), ..nearest(&place(60), 1) });
        assert_eq!(walked.len(), view.len().min(1));
        assert!(walked.iter().all(|hit| seen.contains(&hit.0)));
    };
    thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while !done.load(Ordering::Relaxed) {
                    check();
                }
            });
        }
        scope.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                if !set.maintain(&|| done.load(Ordering::Relaxed)) {
                    thread::yield_now();
                }
            }
        });
        let mut dice = 1u64;
        for round in 0..600 {
            dice = dice.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let pair = (dice >> 33) % PAIRS;
            let mut batch = set.batch();
            for number in [2 * pair, 2 * pair + 1] {
                if round % 4 == 3 {
                    batch.remove(number);
                } else {
                    batch.insert(number, &place(pair + round)).unwrap();
                }
            }
            set.apply(batch);
        }
        done.store(true, Ordering::Relaxed);
    });
    check();
    set.maintain(&|| false);
    check();
}
