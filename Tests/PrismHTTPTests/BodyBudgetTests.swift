import Testing

@testable import PrismHTTP

@Suite("The memory of bodies")
struct BodyBudgetTests {
  @Test("is given until it is used up, and given again when it came back") func bounded() {
    let budget = BodyBudget(bytesMax: 100, bytesPerAddressMax: 100)
    #expect(budget.take(60, of: "a") && budget.take(40, of: "b") && !budget.take(1, of: "c"))
    budget.give(back: 40, of: "b")
    #expect(!budget.take(41, of: "c") && budget.take(40, of: "c"))
  }

  @Test("one address has its share and no more; peers without one share a share") func shares() {
    let budget = BodyBudget(bytesMax: 100, bytesPerAddressMax: 30)
    #expect(budget.take(30, of: "a") && !budget.take(1, of: "a"))
    #expect(budget.take(30, of: "b"))
    for _ in 0..<40 { #expect(budget.take(1, of: "")) }
    #expect(!budget.take(1, of: ""))
    budget.give(back: 30, of: "a")
    #expect(budget.take(30, of: "a"))
  }
}
