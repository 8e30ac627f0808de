//! Benchmarks. `tests/bench/run NAME` prints a table for people, with `--json` one object a line.

#![allow(
    clippy::expect_used,
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a program for the people who build this"
)]

mod check;
mod figure;
mod nvml;

use std::process::ExitCode;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let json = arguments.iter().any(|argument| argument == "--json");
    let names: Vec<&str> = arguments.iter().map(String::as_str).filter(|name| *name != "--json").collect();
    let figures = match names.as_slice() {
        ["check"] => check::figures(),
        ["nvml"] => nvml::figures(None),
        ["nvml", "--library", library] => nvml::figures(Some(library)),
        _ => {
            eprintln!("usage: tests/bench/run check|nvml [--json] [--library FILE]");
            return ExitCode::from(2);
        }
    };
    for figure in &figures {
        println!("{}", if json { figure.json() } else { figure.line() });
    }
    if figures.iter().all(figure::Figure::holds) { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
