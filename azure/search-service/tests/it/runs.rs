//! Tests of requests to indexers that follow each other without a pause, as scripts send them.

use serde_json::json;

use crate::whole::WholeService;

const VERSION: &str = "2025-09-01";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_indexer_can_be_reset_and_run_right_after_it_was_created_or_run() {
    let service = WholeService::start().await;
    let lines: String = (0..500).map(|number| format!("{{\"id\":\"{number}\",\"title\":\"t\"}}\n")).collect();
    service.put_file("notes", "all.jsonl", &lines);
    let index = json!({"name": "notes", "fields": [
        {"name": "id", "type": "Edm.String", "key": true}, {"name": "title", "type": "Edm.String"}]});
    let source = json!({"name": "files", "type": "azureblob", "container": {"name": "notes"},
        "credentials": {"connectionString": "UseDevelopmentStorage=true"}});
    let skills = json!({"name": "skills", "skills": [{
        "@odata.type": "#Microsoft.Skills.Text.SplitSkill", "name": "split",
        "inputs": [{"name": "text", "source": "/document/title"}], "outputs": [{"name": "textItems"}]}]});
    service.ask("POST", "/indexes", VERSION, Some(index), 201).await;
    service.ask("POST", "/datasources", VERSION, Some(source), 201).await;
    service.ask("POST", "/skillsets", VERSION, Some(skills), 201).await;
    for round in 0..3 {
        let indexer = json!({"name": "loader", "dataSourceName": "files", "targetIndexName": "notes",
            "skillsetName": "skills", "parameters": {"configuration": {"parsingMode": "jsonLines"}}});
        service.ask("POST", "/indexers", VERSION, Some(indexer), 201).await;
        service.ask("POST", "/indexers('loader')/search.reset", VERSION, None, 204).await;
        service.ask("POST", "/indexers('loader')/search.run", VERSION, None, 202).await;
        service.ask("POST", "/indexers('loader')/search.run", VERSION, None, 202).await;
        service
            .ask(
                "POST",
                "/skillsets('skills')/search.resetskills",
                VERSION,
                Some(json!({"skillNames": []})),
                204,
            )
            .await;
        service.ask("POST", "/indexers('loader')/search.reset", VERSION, None, 204).await;
        let status = service.ask("GET", "/indexers('loader')/search.status", VERSION, None, 200).await.json();
        let runs = status["executionHistory"].as_array().unwrap();
        let successes = runs.iter().filter(|run| run["status"] == "success").count();
        assert_eq!(successes, 3, "round {round}: {status}");
        service.ask("DELETE", "/indexers/loader", VERSION, None, 204).await;
    }
    service.end().await;
}
