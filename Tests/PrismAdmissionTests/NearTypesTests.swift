import Testing

@testable import PrismAdmission

@Suite("The nearest types") struct NearTypesTests {
  private static let types = ["appCrash", "appLag", "net", "netError", "orderPlaced"]

  @Test(
    "the refusal of an unknown type names the known types nearest to it, the nearest first",
    arguments: [
      ("orderPlace", "orderPlaced"), ("OrderPlaced", "orderPlaced"), ("appcrash", "appCrash"), ("nett", "net"),
      ("netErorr", "netError"), ("appLags", "appLag"),
    ])
  func nearest(name: String, expected: String) {
    let found = NearTypes(Self.types, path: "").nearest(to: name)
    #expect(found.first == expected)
    #expect(found.count == NearTypes.namedMax)
  }

  @Test("equally far ones stay in the order of the list, however long the name is") func order() {
    #expect(NearTypes(["a", "b"], path: "").nearest(to: "zz") == ["a", "b"])
    #expect(NearTypes(Self.types, path: "").nearest(to: String(repeating: "x", count: 100_000)).count == 3)
    #expect(NearTypes([], path: "").nearest(to: "x") == [])
  }
}
