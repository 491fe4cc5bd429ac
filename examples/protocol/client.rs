// A program that answers prompts (docs/protocol.md), in Rust without crates:
//
//     rustc -O --edition 2021 examples/protocol/client.rs && posenc verify --exec ./client
//
// A real program parses the header with serde_json. This one relies on posenc's headers, which have no blanks.
use std::io::{self, Read, Write};

const HELLO: &str = r#"{"__metadata__":{"hello":"1","name":"rust_example","dtypes":"f32",
    "kernels":"rope_half rope_interleaved"}}"#;

/// Returns the text between `before` and the next `after`, from the first place in `text`.
fn between<'a>(text: &'a str, before: &str, after: &str) -> &'a str {
    let from = text.find(before).map_or(text.len(), |at| at + before.len());
    &text[from..from + text[from..].find(after).unwrap_or(0)]
}

/// Returns the numbers of a list such as 3,2,64.
fn numbers(list: &str) -> Vec<usize> {
    list.split(',').filter_map(|word| word.parse().ok()).collect()
}

struct Tensor {
    shape: Vec<usize>,
    values: Vec<f32>,
}

impl Tensor {
    /// Finds the entry of a tensor, such as "x":{"dtype":"F32","shape":[3,2,64],"data_offsets":[0,1536]}.
    fn read(header: &str, data: &[u8], name: &str) -> Tensor {
        let entry = between(header, &format!(",\"{name}\":{{\"dtype\""), "}");
        let offsets = numbers(between(entry, "\"data_offsets\":[", "]"));
        let values = data[offsets[0]..offsets[1]].chunks_exact(4);
        Tensor {
            shape: numbers(between(entry, "\"shape\":[", "]")),
            values: values.map(|b| f32::from_le_bytes(b.try_into().unwrap())).collect(),
        }
    }
}

/// Returns a message's header, or None at the end of the input.
fn read_header(input: &mut impl Read) -> Option<String> {
    let mut length = [0; 8];
    input.read_exact(&mut length).ok()?;
    let mut text = vec![0; u64::from_le_bytes(length) as usize];
    input.read_exact(&mut text).ok()?;
    String::from_utf8(text).ok()
}

/// Returns the bytes after a header: up to the largest end of a tensor.
fn read_data(input: &mut impl Read, header: &str) -> io::Result<Vec<u8>> {
    let ends = header.split("\"data_offsets\":[").skip(1);
    let end = ends.filter_map(|rest| numbers(&rest[..rest.find(']')?]).pop()).max();
    let mut data = vec![0; end.unwrap_or(0)];
    input.read_exact(&mut data)?;
    Ok(data)
}

fn write_message(output: &mut impl Write, header: &str, values: &[f32]) -> io::Result<()> {
    output.write_all(&(header.len() as u64).to_le_bytes())?;
    output.write_all(header.as_bytes())?;
    for value in values {
        output.write_all(&value.to_le_bytes())?;
    }
    output.flush()
}

/// Rotates x [tokens, heads, dim] by cos and sin [tokens, pairs].
fn rotate(x: &Tensor, cos: &Tensor, sin: &Tensor, interleaved: bool) -> Vec<f32> {
    let (heads, dim, pairs) = (x.shape[1], x.shape[2], cos.shape[1]);
    let mut out = x.values.clone(); // channels past the pairs stay as they are
    for row in 0..x.shape[0] * heads {
        for i in 0..pairs {
            let pair = row / heads * pairs + i;
            let a = row * dim + if interleaved { 2 * i } else { i };
            let b = a + if interleaved { 1 } else { pairs };
            let (c, s) = (cos.values[pair], sin.values[pair]);
            out[a] = x.values[a] * c - x.values[b] * s;
            out[b] = x.values[b] * c + x.values[a] * s;
        }
    }
    out
}

fn main() -> io::Result<()> {
    let (mut input, mut output) = (io::stdin().lock(), io::BufWriter::new(io::stdout().lock()));
    while let Some(header) = read_header(&mut input) {
        let data = read_data(&mut input, &header)?;
        let kernel = between(&header, "\"kernel\":\"", "\"");
        if kernel.is_empty() {
            write_message(&mut output, HELLO, &[])?;
            continue;
        }
        let [x, cos, sin] = ["x", "cos", "sin"].map(|name| Tensor::read(&header, &data, name));
        let out = rotate(&x, &cos, &sin, kernel == "rope_interleaved");
        let reply = format!(
            "{{\"__metadata__\":{{\"prompt\":\"{}\"}},\"out\":{{\"dtype\":\"F32\",\"shape\":{:?},\"data_offsets\":[0,{}]}}}}",
            between(&header, "\"prompt\":\"", "\""), x.shape, 4 * out.len());
        write_message(&mut output, &reply, &out)?;
    }
    Ok(())
}
