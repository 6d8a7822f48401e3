import Testing

@testable import PrismHTTP

@Suite("The memory of bodies")
struct BodyBudgetTests {
  @Test("is given until there is none, and given again when it came back") func bounded() {
    let budget = BodyBudget(bytesMax: 100)
    #expect(budget.take(60) && budget.take(40) && !budget.take(1))
    budget.give(back: 40)
    #expect(!budget.take(41) && budget.take(40))
  }
}
