use super::*;

fn budgets(bytes: usize, all_bytes: usize) -> ServiceBudget {
    ServiceBudget::new(RequestLimits {
        time: Duration::from_millis(50),
        bytes,
        all_bytes,
        all_body_bytes: 1000,
        searches: 1,
        ..RequestLimits::default()
    })
}

#[test]
fn memory_is_released_on_drop() {
    let all = budgets(600, 1000);
    let (one, other) = (all.new_request_budget(), all.new_request_budget());
    one.take_memory(500);
    let held = one.reserve_memory(100);
    assert_eq!(
        one.run(|| -> Result<(), _> { unreachable_after(|| one.take_memory(1)) }).unwrap_err().status,
        400
    );
    drop(held);
    one.take_memory(100);
    // The other request may use only the rest of the pool.
    let refused = other.try_take_memory(500).unwrap_err();
    assert_eq!((refused.status.as_u16(), refused.code), (503, "ServiceUnavailable"));
    other.take_memory(400);
    drop(one);
    other.take_memory(200);
    drop(other);
    assert_eq!(all.memory.left(), 1000);
}

fn unreachable_after(work: impl FnOnce()) -> Result<(), ApiError> {
    work();
    unreachable!("the budget must stop the work");
}

#[test]
fn a_response_keeps_its_memory_until_it_is_read() {
    let all = budgets(600, 1000);
    let budget = all.new_request_budget();
    let mut text = JsonBuffer::new(&budget);
    text.bytes = vec![0; 300];
    text.account_growth();
    let answer = Bytes::from(text);
    drop(budget);
    assert_eq!((answer.len(), all.memory.left()), (300, 700));
    drop(answer);
    assert_eq!(all.memory.left(), 1000);
}

#[test]
fn small_bodies_are_not_counted() {
    let all = budgets(600, 1000);
    let budget = all.new_request_budget();
    budget.take_body(SMALL_BODY).unwrap();
    budget.take_body(1000).unwrap();
    assert_eq!(all.new_request_budget().take_body(SMALL_BODY + 1).unwrap_err().status, 503);
    all.new_request_budget().take_body(SMALL_BODY).unwrap();
    drop(budget);
    assert_eq!(all.bodies.left(), 1000);
}

#[test]
fn a_panic_stays_a_panic() {
    let budget = Budget::unlimited();
    let panic = catch_unwind(AssertUnwindSafe(|| budget.run::<()>(|| resume_unwind(Box::new("other")))));
    assert_eq!(*panic.unwrap_err().downcast::<&str>().unwrap(), "other");
}

fn endless(budget: &Budget) -> impl FnOnce() -> Result<(), ApiError> + Send + 'static {
    let budget = budget.clone();
    move || loop {
        budget.check();
        std::thread::yield_now();
    }
}

#[tokio::test]
async fn work_stops_on_timeout_and_on_disconnect() {
    let all = budgets(600, 1000);
    let late = all.new_request_budget();
    let error = late.run_blocking(WorkKind::Search, endless(&late)).await.unwrap_err();
    assert_eq!((error.status.as_u16(), error.code), (503, "RequestTimeout"));
    // There is one slot. The later requests run only because the earlier work has ended.
    let cancelled = all.new_request_budget();
    let work = cancelled.run_blocking(WorkKind::Search, endless(&cancelled));
    assert!(timeout_of(work).await.is_err());
    let next = ServiceBudget {
        limits: RequestLimits { time: Duration::from_secs(60), ..all.limits.clone() },
        ..all
    };
    assert_eq!(next.new_request_budget().run_blocking(WorkKind::Search, || Ok(7)).await, Ok(7));
}

async fn timeout_of<T>(work: impl Future<Output = T>) -> Result<T, tokio::time::error::Elapsed> {
    tokio::time::timeout(Duration::from_millis(10), work).await
}
