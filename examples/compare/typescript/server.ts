// The orders server on the TypeScript SDK: `ORDERS_KEY=secret node server.ts 8080`.
import { hash, timingSafeEqual } from "node:crypto";
import { serve } from "@hono/node-server";
import { createMcpHonoApp } from "@modelcontextprotocol/hono";
import {
  createMcpHandler,
  McpServer,
  ResourceNotFoundError,
  ResourceTemplate,
} from "@modelcontextprotocol/server";
import type { Context } from "hono";
import * as z from "zod";

const Order = z.object({ id: z.string(), status: z.string(), total: z.number() });
type Order = z.infer<typeof Order>;

const GetOrder = z.object({ orderId: z.string().describe("The order's id") });

const CreateOrder = z.object({
  customerId: z.string(),
  items: z.array(z.object({ itemId: z.string(), quantity: z.int().min(1).max(100) })).min(1),
  priority: z.enum(["low", "normal", "high", "urgent"]).default("normal"),
  notes: z.string().max(500).optional(),
});

const OrderSummary = z.object({
  orderId: z.string().describe("The order's id"),
  tone: z.string().default("friendly"),
});

const orders = new Map<string, Order>([
  ["123", { id: "123", status: "open", total: 18.5 }],
  ["124", { id: "124", status: "delivered", total: 7.25 }],
]);
const menu = new Map(
  Object.entries({
    appetizers: [
      { id: "rolls", name: "Spring rolls", price: 6.5 },
      { id: "soup", name: "Tomato soup", price: 5.25 },
    ],
    drinks: [
      { id: "lemonade", name: "Lemonade", price: 3.5 },
      { id: "tea", name: "Green tea", price: 2.75 },
    ],
  }),
);

function structured(order: Order) {
  return { content: [{ type: "text" as const, text: JSON.stringify(order) }], structuredContent: order };
}

function buildServer() {
  const server = new McpServer({ name: "orders-compare", version: "1.0.0" });

  server.registerTool(
    "get_order",
    {
      description: "Looks up an order.",
      inputSchema: GetOrder,
      outputSchema: Order,
      annotations: { readOnlyHint: true },
    },
    ({ orderId }) => {
      const order = orders.get(orderId);
      if (!order) throw new Error(`unknown order: ${orderId}`);
      return structured(order);
    },
  );

  server.registerTool(
    "create_order",
    { description: "Places an order.", inputSchema: CreateOrder, outputSchema: Order },
    ({ items }) => {
      let total = 0;
      for (const { itemId, quantity } of items) {
        const item = [...menu.values()].flat().find(({ id }) => id === itemId);
        if (!item) throw new Error(`unknown item: ${itemId}`);
        total += item.price * quantity;
      }
      const order = { id: String(123 + orders.size), status: "open", total };
      orders.set(order.id, order);
      return structured(order);
    },
  );

  server.registerTool(
    "get_time",
    { description: "The server's time; no key required.", annotations: { readOnlyHint: true } },
    () => ({ content: [{ type: "text", text: new Date().toISOString() }] }),
  );

  server.registerResource(
    "Menu category",
    new ResourceTemplate("menu://categories/{categoryId}", { list: undefined }),
    { description: "The items of a category.", mimeType: "application/json" },
    (uri, { categoryId }) => {
      const items = menu.get(String(categoryId));
      if (!items) throw new ResourceNotFoundError(uri.href);
      return { contents: [{ uri: uri.href, mimeType: "application/json", text: JSON.stringify(items) }] };
    },
  );

  server.registerPrompt(
    "order_summary",
    { description: "Asks for a summary of an order.", argsSchema: OrderSummary },
    ({ orderId, tone }) => {
      const text = `Summarize order ${orderId} for the customer in a ${tone} tone.`;
      return { messages: [{ role: "user", content: { type: "text", text } }] };
    },
  );

  return server;
}

// The methods to find and call `get_time`, which need no key.
const openMethods = ["initialize", "notifications/initialized", "server/discover", "ping", "tools/list"];

function isOpen(message?: { method?: string; params?: { name?: string } }) {
  if (message?.method === "tools/call") return message.params?.name === "get_time";
  return openMethods.includes(message?.method ?? "");
}

// Digests have equal lengths, as the constant-time comparison requires.
const digest = (key: string) => hash("sha256", key, "buffer");

const { ORDERS_KEY } = process.env;
if (!ORDERS_KEY) throw new Error("ORDERS_KEY is not set");
const key = digest(ORDERS_KEY);

const handler = createMcpHandler(buildServer);
const app = createMcpHonoApp();
app.all("/mcp", async (c: Context) => {
  const parsedBody = c.get("parsedBody");
  const hasKey = timingSafeEqual(digest(c.req.header("x-api-key") ?? ""), key);
  if (!hasKey && !isOpen(parsedBody)) return c.body(null, 401);
  return handler.fetch(c.req.raw, { parsedBody });
});
serve({ fetch: app.fetch, hostname: "127.0.0.1", port: Number(process.argv[2]) });
