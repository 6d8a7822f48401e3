import Testing

@testable import PrismHTTP

@Suite("The memory of bodies")
struct BodyBudgetTests {
  private static func take(_ bytes: Int, _ budget: BodyBudget, isProven: Bool) -> BodyBudget.Charge? {
    var charge = BodyBudget.Charge()
    return budget.take(bytes, isProven: isProven, into: &charge) ? charge : nil
  }

  @Test("is given until it is used up, and given again when it came back") func bounded() throws {
    let budget = BodyBudget(bytesMax: 80, bodyBytesMax: 10)
    let first = try #require(Self.take(60, budget, isProven: true))
    #expect(Self.take(20, budget, isProven: true) != nil && Self.take(1, budget, isProven: true) == nil)
    budget.give(back: first)
    #expect(Self.take(61, budget, isProven: true) == nil && Self.take(60, budget, isProven: true) != nil)
  }

  @Test("unproven senders have a quarter, and room for one body; proven ones have the rest", arguments: [10, 30])
  func shares(bodyBytesMax: Int) throws {
    let budget = BodyBudget(bytesMax: 80, bodyBytesMax: bodyBytesMax)
    let share = max(20, bodyBytesMax)
    let first = try #require(Self.take(share, budget, isProven: false))
    #expect(Self.take(1, budget, isProven: false) == nil)
    #expect(Self.take(80 - share, budget, isProven: true) != nil)
    budget.give(back: first)
    #expect(Self.take(share, budget, isProven: false) != nil)
  }

  @Test("bytes that unproven senders borrow of the rest keep no proven one out") func borrowed() throws {
    let budget = BodyBudget(bytesMax: 80, bodyBytesMax: 10)
    var charge = BodyBudget.Charge()
    #expect(budget.take(20, isProven: false, into: &charge) && !budget.take(1, isProven: false, into: &charge))
    #expect(budget.take(60, isProven: false, isUrgent: true, into: &charge))
    #expect(!budget.take(1, isProven: false, isUrgent: true, into: &charge))
    #expect(Self.take(61, budget, isProven: true) == nil && Self.take(60, budget, isProven: true) != nil)
  }
}
