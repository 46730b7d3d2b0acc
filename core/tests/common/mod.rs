//! Pages of real and rebuilt drives, as files of hex.
#![forbid(unsafe_code)]

/// The page in `data/NAME`: rows of an offset and bytes, `# length: N` for the size; what is not listed is zero.
pub fn page(name: &str) -> Vec<u8> {
    let path = format!("{}/tests/data/{name}", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}"));
    let length = text.lines().find_map(|line| line.strip_prefix("# length: ")).expect("a length");
    let mut page = vec![0; length.trim().parse().expect("a number")];
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        let (offset, bytes) = line.split_once(':').expect("offset and bytes");
        let mut at = usize::from_str_radix(offset, 16).expect("an offset in hex");
        for byte in bytes.split_whitespace() {
            if at < page.len() {
                page[at] = u8::from_str_radix(byte, 16).expect("a byte in hex");
            }
            at += 1;
        }
    }
    page
}
