//! Plain text tables: the first column to the left, the others to the right.

/// Prints rows under a heading, each column as wide as its widest cell.
pub(crate) fn print(heading: &[&str], rows: &[Vec<String>]) {
    let heading: Vec<String> = heading.iter().map(ToString::to_string).collect();
    let all: Vec<&Vec<String>> = std::iter::once(&heading).chain(rows).collect();
    let widths: Vec<usize> = (0..heading.len())
        .map(|column| {
            all.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count()).max().unwrap_or(0)
        })
        .collect();
    for row in all {
        let cells = row.iter().zip(&widths).enumerate().map(|(column, (cell, &width))| match column {
            0 => format!("{cell:<width$}"),
            _ => format!("{cell:>width$}"),
        });
        println!("{}", cells.collect::<Vec<_>>().join("  ").trim_end());
    }
}
