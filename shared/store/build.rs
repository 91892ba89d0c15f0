//! Compiles the crate again when a migration is added: the macro that embeds them can not say so itself.

fn main() {
    println!("cargo:rerun-if-changed=../../migrations");
}
