import Testing

@testable import PrismSQL

@Suite struct PostgreSQLTargetTests {
  @Test(
    "a connection string is checked before it is used: a password in it is refused",
    arguments: [
      ("postgresql://u:secret@db/prism", "holds a password"),
      ("postgresql://db/prism?password=secret", "holds a password"),
      ("host=db", "must begin with postgresql://"), ("postgresql://db/prism?nonsense=1", "no connection URI"),
    ])
  func targets(uri: String, words: String) {
    #expect { try PostgreSQLTarget(uri: uri) } throws: { "\($0)".contains(words) && !"\($0)".contains("secret") }
  }

  @Test(
    "a server over a network is verified unless the connection string says otherwise, and then a warning names that",
    arguments: [
      ("postgresql://u@db1,db2/p", "verify-full", false),
      ("postgresql://u@127.0.0.1,192.0.2.1/p", "verify-full", false),
      ("postgresql://u@db/p?sslmode=require", "require", true),
      ("postgresql://u@db/p?sslmode=disable", "disable", true),
      ("postgresql://u@localhost/p?hostaddr=192.0.2.1", "verify-full", false),
      ("postgresql://u@127.0.0.1:1,[::1]:2/p", nil, false), ("postgresql://u@/p?host=/run/postgresql", nil, false),
      ("postgresql://u@db/p?hostaddr=127.0.0.1", nil, false), ("postgresql:///p", nil, false),
    ] as [(String, String?, Bool)])
  func verifiesServers(uri: String, mode: String?, isWarned: Bool) throws {
    let target = try PostgreSQLTarget(uri: uri)
    #expect(target.parameters.first { $0.keyword == "sslmode" }?.value == mode)
    #expect(target.tlsWarning?.contains("sslmode=\(mode ?? "")") == (isWarned ? true : nil))
  }
}
