//! Which crate may depend on which.
//!
//! Owns: the two sides (the server, the tools) and the engine's one home. Refuses to read
//! manifests: cargo has read them. Invariant: the row constants and their attribute are for tests,
//! so a server crate has them among its dev-dependencies only.

use crate::finding::{At, Finding};
use crate::repository::{Dependency, Package};

use super::tree::Tree;

/// Directories of the tools, which drive a server as a binary and know none of its crates.
const TOOLS: [&str; 5] = ["smokes", "sabotage", "traceability", "xtask", "spec"];
/// Tools that tests of the server may name.
const FOR_TESTS: [&str; 2] = ["m0-spec", "traceability-attr"];
/// The HTTP engine, its HTTP/2 included, and the only server crate that may name it.
const ENGINE: [&str; 3] = ["hyper", "hyper-util", "h2"];
const ENGINE_HOME: &str = "m0-host";

/// Server crates that name a tool, and tools that name a server crate.
pub(crate) fn apart(tree: &Tree) -> Vec<Finding> {
    let named = |name: &str| tree.packages.iter().find(|package| package.name == name);
    let mut findings = Vec::new();
    for package in &tree.packages {
        for dependency in &package.dependencies {
            let Some(other) = named(&dependency.name) else {
                continue;
            };
            let for_tests = is_dev(dependency) && FOR_TESTS.contains(&other.name.as_str());
            if is_server(package) && is_tool(other) && !for_tests {
                findings.push(finding(
                    package,
                    format!("a server crate depends on the tool {}", other.name),
                ));
            }
            if is_tool(package) && is_server(other) {
                findings.push(finding(
                    package,
                    format!("a tool depends on the server crate {}", other.name),
                ));
            }
        }
    }
    findings
}

/// Server crates other than the host that name the engine.
pub(crate) fn engine(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for package in tree
        .packages
        .iter()
        .filter(|package| is_server(package) && package.name != ENGINE_HOME)
    {
        for dependency in &package.dependencies {
            if ENGINE.contains(&dependency.name.as_str()) {
                findings.push(finding(
                    package,
                    format!("depends on {}; {ENGINE_HOME} alone may", dependency.name),
                ));
            }
        }
    }
    findings
}

fn finding(package: &Package, message: String) -> Finding {
    Finding {
        at: At::file(&package.manifest_path),
        message,
    }
}

fn is_dev(dependency: &Dependency) -> bool {
    dependency.kind.as_deref() == Some("dev")
}

fn is_server(package: &Package) -> bool {
    package.manifest_path.starts_with("server")
}

fn is_tool(package: &Package) -> bool {
    TOOLS
        .iter()
        .any(|tool| package.manifest_path.starts_with(tool))
}
