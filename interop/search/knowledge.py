"""Knowledge sources, and queries with them: agents in the older generation, knowledge bases in the newer one."""

from azure.search.documents.indexes.models import (
    KnowledgeSourceReference,
    SearchIndexKnowledgeSource,
    SearchIndexKnowledgeSourceParameters,
)

from report import Skip, check, has, refused, same
from sdk import AGENTS, rows


@check
async def knowledge_sources_come_and_go(sdk):
    name = sdk.name("knows")
    made = await sdk.indexes.create_knowledge_source(
        SearchIndexKnowledgeSource(
            name=name,
            description="hotels",
            search_index_parameters=SearchIndexKnowledgeSourceParameters(search_index_name=sdk.name("hotels")),
        )
    )
    same((made.name, made.search_index_parameters.search_index_name), (name, sdk.name("hotels")))
    read = await sdk.indexes.get_knowledge_source(name)
    same((read.kind, read.description), ("searchIndex", "hotels"))
    has([one.name for one in await rows(sdk.indexes.list_knowledge_sources())], name)
    await sdk.indexes.create_or_update_knowledge_source(read)
    await refused(404, sdk.indexes.get_knowledge_source(sdk.name("nothing")))


@check
async def a_knowledge_source_has_a_status(sdk):
    if not hasattr(sdk.indexes.client, "get_knowledge_source_status"):
        raise Skip("this generation does not ask for it")
    status = await sdk.indexes.get_knowledge_source_status(sdk.name("knows"))
    same(bool(status.synchronization_status), True)


@check
async def a_base_or_agent_is_asked(sdk):
    name = sdk.name("base")
    if AGENTS:
        text, references, activity = await ask_agent(sdk, name)
    else:
        text, references, activity = await ask_base(sdk, name)
    has(text, "quiet castle")
    has([reference.doc_key for reference in references], "4")
    same(bool(activity), True)


async def ask_agent(sdk, name):
    from azure.search.documents.agent.models import (
        KnowledgeAgentMessage,
        KnowledgeAgentMessageTextContent,
        KnowledgeAgentRetrievalRequest,
    )
    from azure.search.documents.indexes.models import (
        AzureOpenAIVectorizerParameters,
        KnowledgeAgent,
        KnowledgeAgentAzureOpenAIModel,
    )

    model = AzureOpenAIVectorizerParameters(
        resource_url="https://example.com", deployment_name="d", model_name="gpt-4o"
    )
    agent = KnowledgeAgent(
        name=name,
        models=[KnowledgeAgentAzureOpenAIModel(azure_open_ai_parameters=model)],
        knowledge_sources=[KnowledgeSourceReference(name=sdk.name("knows"))],
    )
    same((await sdk.indexes.create_agent(agent)).name, name)
    same((await sdk.indexes.get_agent(name)).knowledge_sources[0].name, sdk.name("knows"))
    has([one.name for one in await rows(sdk.indexes.list_agents())], name)
    content = [KnowledgeAgentMessageTextContent(text="Which castle is by a lake?")]
    request = KnowledgeAgentRetrievalRequest(messages=[KnowledgeAgentMessage(role="user", content=content)])
    answer = await sdk.retrieval(name).retrieve(request)
    return answer.response[0].content[0].text, answer.references, answer.activity


async def ask_base(sdk, name):
    from azure.search.documents.indexes.models import KnowledgeBase
    from azure.search.documents.knowledgebases.models import (
        KnowledgeBaseRetrievalRequest,
        KnowledgeRetrievalSemanticIntent,
    )

    base = KnowledgeBase(name=name, knowledge_sources=[KnowledgeSourceReference(name=sdk.name("knows"))])
    same((await sdk.indexes.create_knowledge_base(base)).name, name)
    read = await sdk.indexes.get_knowledge_base(name)
    same(read.knowledge_sources[0].name, sdk.name("knows"))
    await sdk.indexes.create_or_update_knowledge_base(read)
    has([one.name for one in await rows(sdk.indexes.list_knowledge_bases())], name)
    intents = [KnowledgeRetrievalSemanticIntent(search="Which castle is by a lake?")]
    answer = await sdk.retrieval(name).retrieve(KnowledgeBaseRetrievalRequest(intents=intents))
    return answer.response[0].content[0].text, answer.references, answer.activity
