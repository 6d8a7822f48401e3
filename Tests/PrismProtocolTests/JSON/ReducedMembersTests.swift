import PrismProtocol
import Testing

@Suite struct ReducedMembersTests {
  @Test("a string is cut between its characters, and no byte of it goes uncounted", arguments: 0...60)
  func strings(bytes: Int) throws {
    let plain = "a\n\u{1}é\"€😀\\z/x😀\u{7FF}y"
    for written in [#"a\n\u0001é\"€😀\\z/x😀߿y"#, #"\u0061\u000A\u0001\u00e9\u0022\u20AC\uD83D\uDE00\\z\/x😀\u07ffy"#] {
      let members = Array(#" "key" : "\#(written)" , "n":[1, {}, [] ,"\#(written)"]"#.utf8)
      let found = ReducedMembers(members.span, 0..<members.count, bytesMax: 1000, stringBytesMax: bytes)
      let reduced = try #require(found)
      let read = try JSONValue(parsingMembers: reduced.text)
      let (first, second) = (read["key"]?.string ?? "", read["n"]?.array?.last?.string ?? "")
      #expect(plain.hasPrefix(first) && first == second && read["n"]?.array?.count == 4)
      #expect(first.utf8.count + second.utf8.count + reduced.lostBytes == 2 * plain.utf8.count)
      let longest = reduced.longest.map { [$0.key.string(in: members.span), $0.value.string(in: members.span)] }
      #expect(longest == ["key", plain])
    }
  }

  @Test("its size is bounded, short members that come late stay, and what is no JSON is nothing")
  func bounds() throws {
    let long = (0..<500).map { #""k\#($0)":"\#(String(repeating: "x", count: 300))""# }.joined(separator: ",")
    let lists = #""l":[[\#(Array(repeating: "[1,2]", count: 900).joined(separator: ","))],[3]]"#
    for text in [long + "," + lists + #","late":true"#, lists + "," + long + #","late":true"#] {
      let members = Array(text.utf8)
      let found = ReducedMembers(members.span, 0..<members.count, bytesMax: 4000, stringBytesMax: 100)
      let reduced = try #require(found)
      let late = try JSONValue(parsingMembers: reduced.text)["late"]
      #expect(reduced.text.count <= 5000 && late == true)
      #expect(reduced.lostBytes > members.count - 6000 && reduced.lostBytes < members.count)
    }
    for text in ["1", #""a""#, #""a":"#, #""a":[1"#, #""a":1 "b" 2"#] {
      let members = Array(text.utf8)
      let reduced = ReducedMembers(members.span, 0..<members.count, bytesMax: 4000, stringBytesMax: 100)
      #expect(reduced == nil, "\(text)")
    }
  }
}
