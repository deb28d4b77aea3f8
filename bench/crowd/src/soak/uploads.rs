//! Load with bodies of some MiB: sent at once, sent slowly, and aborted in the middle.
use super::sessions::result;
use super::{client, sleep, World};
use crate::http::{Checked, Connection, Reply};
use crate::mcp::{call, ending, is_text, Caller};
use crate::random::Random;
use serde_json::json;
use std::rc::Rc;
use std::time::Instant;
use tokio::task::JoinHandle;

const PIECE: usize = 64 * 1024;
/// The milliseconds between two groups of slow uploads. A quarter of a whole number of minutes contains
/// whole periods, so that the quarters of a run are comparable.
const CROWD_EVERY: u64 = 15_000;

pub fn clients(world: &Rc<World>) -> Vec<JoinHandle<()>> {
    let mut clients = Vec::new();
    for number in 0..3 {
        let (seed, key) = (500 + u64::from(number), 11 + number);
        clients.push(client(world, seed, "upload", (300, 1_500), async move |world, random| {
            let bytes = size(random);
            upload(random, &world.caller(key), bytes, 0).await
        }));
        clients.push(client(world, seed + 10, "upload, slow", (100, 1_000), async move |world, random| {
            let bytes = size(random);
            upload(random, &world.caller(key), bytes, 150).await
        }));
        clients.push(client(world, seed + 20, "upload, cut", (200, 1_000), async move |world, random| {
            cut(random, &world.caller(key)).await
        }));
    }
    // From time to time many slow uploads run at once. Together they exceed the memory limit of the server.
    for number in 0..24 {
        clients.push(client(
            world,
            600 + number,
            "upload, in a crowd",
            (0, 0),
            async move |world, random| {
                let left = world.end.saturating_duration_since(Instant::now()).as_millis() as u64;
                sleep(left % CROWD_EVERY).await;
                if world.is_over() {
                    return Ok("not begun");
                }
                world.crowded.set(Some(Instant::now()));
                upload(random, &world.caller(14), 2 << 20, 100).await
            },
        ));
    }
    clients
}

/// Sends a text of this many bytes, with pauses of some milliseconds, and checks the server's response.
async fn upload(random: &mut Random, caller: &Caller, bytes: usize, pause: u64) -> Checked<&'static str> {
    let mut connection = caller.connect().await?;
    let text = large_text(random, bytes);
    let id = json!(random.text());
    let (head, body) = caller.modern_in_parts(&id, "tools/call", call("upload", json!({"text": text})));
    let reply = send_in_pieces(&mut connection, &head, &body, pause).await?;
    let result = result!(ending(reply, &id)?);
    let sum = text.bytes().fold(0_u32, |sum, byte| sum.wrapping_mul(31).wrapping_add(byte.into()));
    is_text(&result, &format!("{} bytes, {sum:08x}", text.len()))?;
    Ok("answered")
}

async fn send_in_pieces(connection: &mut Connection, head: &str, body: &str, pause: u64) -> Checked<Reply> {
    connection.send(head.as_bytes()).await?;
    for piece in body.as_bytes().chunks(PIECE) {
        if let Err(trouble) = connection.send(piece).await {
            // A server that rejects a body need not read all of it, but its response must arrive.
            return connection.reply().await.map_err(|_| trouble);
        }
        if pause > 0 {
            sleep(pause).await;
        }
    }
    connection.reply().await
}

/// Sends a body that ends early. No response is expected.
async fn cut(random: &mut Random, caller: &Caller) -> Checked<&'static str> {
    let mut connection = caller.connect().await?;
    let bytes = size(random);
    let text = large_text(random, bytes);
    let (head, body) = caller.modern_in_parts(&json!(1), "tools/call", call("upload", json!({"text": text})));
    connection.send(head.as_bytes()).await?;
    for piece in body.as_bytes()[..random.below(body.len() as u64) as usize].chunks(PIECE) {
        if connection.send(piece).await.is_err() {
            return Ok("refused before it was cut");
        }
        sleep(random.below(60)).await;
    }
    Ok("cut by us")
}

/// Returns a size of 1 to 3 MiB.
fn size(random: &mut Random) -> usize {
    random.between(1 << 20, 3 << 20) as usize
}

fn large_text(random: &mut Random, bytes: usize) -> String {
    random.text().chars().cycle().take(bytes).collect()
}
