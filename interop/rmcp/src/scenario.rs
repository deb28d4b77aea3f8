//! A scenario is a file of conversations for all clients. `interop/README.md` describes it.

use std::{collections::BTreeMap, fs};

use anyhow::{Context, bail, ensure};
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use serde_json::Value;

use crate::{Client, Headers, Way, report::Report};

#[derive(Deserialize)]
struct Conversation {
    server: Server,
    headers: Headers,
    checks: Vec<Check>,
}

#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum Server {
    Open,
    Keys,
}

#[derive(Deserialize)]
struct Check {
    check: String,
    steps: Vec<Value>,
    #[serde(default)]
    refused: Vec<String>,
}

#[derive(Deserialize)]
struct Step {
    send: String,
    #[serde(default)]
    params: Value,
    #[serde(default)]
    has: Value,
    #[serde(default)]
    says: Vec<String>,
    keep: Option<String>,
}

/// Runs a scenario. There is no server with keys on stdio, so its conversations are skipped there.
pub async fn run(
    report: &mut Report,
    way: &Way<'_>,
    file: &str,
    open: &str,
    keys: Option<&str>,
) -> anyhow::Result<()> {
    let text = fs::read_to_string(file).with_context(|| file.to_owned())?;
    let conversations: Vec<Conversation> = serde_json::from_str(&text).with_context(|| file.to_owned())?;
    for Conversation { server, headers, checks } in conversations {
        let server = match server {
            Server::Open => Some(open),
            Server::Keys => keys,
        };
        let Some(server) = server else { continue };
        let client = way.connect(server, &headers).await?;
        for check in &checks {
            report.check(&check.check, check.run(&client)).await;
        }
        client.cancel().await?;
    }
    Ok(())
}

impl Check {
    async fn run(&self, client: &Client) -> anyhow::Result<()> {
        let end = self.take_steps(client).await;
        if self.refused.is_empty() {
            return end;
        }
        let Err(error) = end else { bail!("it was not refused") };
        let text = format!("{error:#}").to_lowercase();
        let as_expected = self.refused.iter().any(|word| text.contains(word));
        ensure!(as_expected, "refused, but not with one of {:?}: {text}", self.refused);
        Ok(())
    }

    async fn take_steps(&self, client: &Client) -> anyhow::Result<()> {
        let mut kept = BTreeMap::new();
        for step in &self.steps {
            let filled = kept.iter().fold(step.to_string(), |text, (name, value): (&String, &String)| {
                text.replace(&format!("<{name}>"), value)
            });
            let Step { send: method, params, has, says, keep } = serde_json::from_str(&filled)?;
            let result = send(client, &method, params).await?;
            let text = result.to_string();
            let may_fail = has["isError"] == true;
            ensure!(may_fail || result["isError"] != true, "{method} ended as an error: {text}");
            ensure!(contains(&result, &has), "{method}: {has} is not in {text}");
            for words in &says {
                ensure!(text.contains(words), "{method}: {words:?} is not in {text}");
            }
            if let Some(name) = keep {
                let value = result["structuredContent"][&name].as_str().context("nothing to keep")?;
                kept.insert(name, value.to_owned());
            }
        }
        Ok(())
    }
}

async fn send(client: &Client, method: &str, params: Value) -> anyhow::Result<Value> {
    match method {
        "tools/list" => value(client.list_tools(None).await?),
        "tools/call" => value(client.call_tool(typed(params)?).await?),
        "resources/list" => value(client.list_resources(None).await?),
        "resources/templates/list" => value(client.list_resource_templates(None).await?),
        "resources/read" => value(client.read_resource(typed(params)?).await?),
        "prompts/list" => value(client.list_prompts(None).await?),
        "prompts/get" => value(client.get_prompt(typed(params)?).await?),
        "completion/complete" => value(client.complete(typed(params)?).await?),
        other => bail!("no scenario has needed {other} yet"),
    }
}

fn typed<T: DeserializeOwned>(params: Value) -> anyhow::Result<T> {
    Ok(serde_json::from_value(params)?)
}

fn value(result: impl Serialize) -> anyhow::Result<Value> {
    Ok(serde_json::to_value(result)?)
}

/// Objects may have more members and lists more items, in any order. Every value contains null.
fn contains(actual: &Value, expected: &Value) -> bool {
    match expected {
        Value::Null => true,
        Value::Object(members) => members.iter().all(|(name, value)| contains(&actual[name], value)),
        Value::Array(items) => {
            let all = actual.as_array().map_or(&[][..], Vec::as_slice);
            items.iter().all(|item| all.iter().any(|it| contains(it, item)))
        }
        plain => actual == plain,
    }
}
