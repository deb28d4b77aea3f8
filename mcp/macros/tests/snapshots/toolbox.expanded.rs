impl<S: Store> Orders<S> {
    pub fn new(store: S) -> Orders<S> {
        Orders { store }
    }
    #[doc = " Finds an order."]
    pub async fn get_order(&self, id: String) -> Result<Order, ToolError> {
        self.store.get(&id).await
    }
    #[doc = " All orders of a day."]
    fn orders(&self, day: String) -> Vec<Order> {
        self.store.of_day(&day)
    }
}
#[allow(clippy::all, clippy::pedantic, clippy::nursery, deprecated)]
impl<S: Store> ::bindpost::Toolbox for Orders<S> {
    fn entries(self: ::std::sync::Arc<Self>) -> ::std::vec::Vec<::bindpost::Entry> {
        #[allow(unused_variables)]
        let this = self;
        #[allow(unused_mut)]
        let mut entries = ::std::vec::Vec::new();
        entries.push(::std::convert::Into::<::bindpost::Entry>::into({
            #[allow(unused_imports)]
            use ::bindpost::returns::{
                ContentReturn as _, InfallibleReturn as _, SerializedReturn as _, StructuredReturn as _,
            };
            let returns = ::bindpost::returns::ReturnType::<Result<Order, ToolError>>::new().of_value();
            ::bindpost::ToolEntry::with_signature(
                "get_order",
                ::bindpost::Signature::new().parameter::<String, _>(::bindpost::Argument::new("id")),
                {
                    let this = ::std::clone::Clone::clone(&this);
                    move |mut parts: ::bindpost::CallParts| {
                        let this = ::std::clone::Clone::clone(&this);
                        async move {
                            let p0 = parts.fill::<String, _>("id")?;
                            let returns = ::bindpost::returns::ReturnType::<Result<Order, ToolError>>::new();
                            let value = returns.settle(Self::get_order(&this, p0).await)?;
                            (&&&returns.of_value()).tool_result(value)
                        }
                    }
                },
            )
            .output_schema((&&&returns).output_schema())
            .description("Finds an order.")
            .hints(::bindpost::ToolHints {
                read_only: true,
                destructive: false,
                idempotent: false,
                open_world: true,
            })
        }));
        entries.push(::std::convert::Into::<::bindpost::Entry>::into({
            #[allow(unused_imports)]
            use ::bindpost::returns::{
                InfallibleReturn as _, ResourceReturn as _, SerializedResourceReturn as _,
            };
            ::bindpost::TemplateEntry::with_signature(
                "orders://{day}",
                "orders",
                ::bindpost::Signature::new().parameter::<String, _>(::bindpost::Argument::new("day")),
                {
                    let this = ::std::clone::Clone::clone(&this);
                    move |mut parts: ::bindpost::CallParts| {
                        let this = ::std::clone::Clone::clone(&this);
                        async move {
                            let p0 = parts.fill::<String, _>("day")?;
                            let returns = ::bindpost::returns::ReturnType::<Vec<Order>>::new();
                            let value = returns.settle(Self::orders(&this, p0))?;
                            ::std::result::Result::Ok((&&returns.of_value()).contents(value))
                        }
                    }
                },
            )
            .description("All orders of a day.")
            .mime_type("application/json")
            .completer("day", {
                let this = ::std::clone::Clone::clone(&this);
                move |typed: &str| this.days(typed)
            })
        }));
        entries
    }
}
