import Foundation
import PrismHTTP
import PrismProtocol
import PrismTestSupport
import Testing

@testable import PrismCollector

@Suite("Who may use the page")
struct PageAccessTests {
  @Test("every path of the API but those of the session needs a reader's token; a sender's token is no reader's")
  func tokens() async throws {
    let rig = try PageRig()
    for (place, route) in PageRoutes.all.enumerated() where route.access != .everybody {
      let path = "/api/v1" + route.path.replacing("{id}", with: "1").replacing("{fingerprint}", with: "f")
      for headers in [
        [], [(name: "authorization", value: "Bearer sender-token-of-tests")],
        [("authorization", "viewer-token-of-tests")],
      ] {
        let answer = await rig.answer(
          PageRig.request(path, method: route.method, headers: headers, address: "192.0.2.\(place)"))
        #expect(answer.status == 401, "\(path)")
        #expect(answer.headers.contains { $0 == ("Content-Type", "application/problem+json") })
      }
    }
    for token in ["viewer-token-of-tests", "operator-token-of-tests"] {
      let answer = await rig.answer(PageRig.request("/api/v1/fleet", headers: [("authorization", "Bearer \(token)")]))
      #expect(answer.status == 200)
    }
  }

  @Test("a page of another origin that lets its own name point here gets neither the page nor the API")
  func hosts() async throws {
    let rig = try PageRig(hasTokens: false)
    for path in ["/", "/app.js", "/api/v1/session", "/api/v1/fleet"] {
      for host in ["evil.example", "", nil] {
        #expect(await rig.answer(PageRig.request(path, host: host)).status == 403)
      }
    }
  }

  @Test("without tokens this machine reads under its own names, as a viewer; no other machine does")
  func local() async throws {
    let rig = try PageRig(hasTokens: false)
    #expect(await rig.answer(PageRig.request("/api/v1/fleet")).status == 200)
    #expect(await rig.answer(PageRig.request("/api/v1/fleet", host: "localhost")).status == 200)
    #expect(await rig.answer(PageRig.request("/api/v1/fleet", host: "192.0.2.1")).status == 401)
    #expect(await rig.answer(PageRig.request("/api/v1/fleet", isLocal: false)).status == 401)
    let given = await rig.answer(
      PageRig.request("/api/v1/fleet", headers: [("authorization", "Bearer sender-token-of-tests")]))
    #expect(given.status == 401 && String(decoding: given.body, as: UTF8.self).contains("without one"))
    let session = try JSONValue(parsing: await rig.answer(PageRig.request("/api/v1/session")).body)
    #expect(session["role"] == "viewer" && session["needsToken"] == false)
  }

  @Test("a collector for trying takes changes from its own page and from programs, and of no other origin or machine")
  func trial() async throws {
    let rig = try PageRig(hasTokens: false, isTrial: true)
    func change(_ headers: [(name: String, value: String)], isLocal: Bool = true) async -> Int {
      await rig.answer(
        PageRig.request(
          "/api/v1/configuration/rollout", method: .post, headers: headers + [("content-type", "application/json")],
          body: "{}", isLocal: isLocal)
      ).status
    }
    // An operator learns that there is nothing to roll out here.
    #expect(await change([]) == 409)
    #expect(await change([("sec-fetch-site", "same-origin")]) == 409)
    for site in ["cross-site", "same-site"] { #expect(await change([("sec-fetch-site", site)]) == 403) }
    #expect(await change([], isLocal: false) == 401)
    let session = try JSONValue(parsing: await rig.answer(PageRig.request("/api/v1/session")).body)
    #expect(session["role"] == "operator" && session["name"] == "operator (--dev)")
  }

  @Test("a session reads what its token reads, until it expires or its token is removed")
  func session() async throws {
    let rig = try PageRig()
    let session = try await rig.signIn("viewer-token-of-tests")
    let read = { (cookie: String) in
      await rig.answer(PageRig.request("/api/v1/fleet", headers: [("cookie", cookie)])).status
    }
    #expect(await read("a=b; \(session.cookie); c=d") == 200)
    #expect(await read(session.cookie.replacing("viewer", with: "operator")) == 401)
    #expect(await read(String(session.cookie.dropLast()) + (session.cookie.hasSuffix("0") ? "1" : "0")) == 401)
    let parts = session.cookie.split(separator: ".")
    #expect(await read("\(parts[0]).9999999999.\(parts[2]).\(parts[3])") == 401)
    try "another-token-of-tests\n".write(toFile: rig.rig.path + "/viewers", atomically: true, encoding: .utf8)
    rig.rig.time.advance(by: .seconds(5))
    #expect(await read(session.cookie) == 401)
    try "viewer-token-of-tests\n".write(toFile: rig.rig.path + "/viewers", atomically: true, encoding: .utf8)
    rig.rig.time.advance(by: .seconds(5))
    #expect(await read(session.cookie) == 200)
    rig.rig.time.advance(by: .seconds(ReaderSession.lifetimeSeconds))
    #expect(await read(session.cookie) == 401)
  }

  @Test("the cookie is out of reach of scripts and of other sites")
  func cookie() async throws {
    let rig = try PageRig()
    let answer = await rig.answer(
      PageRig.request(
        "/api/v1/session", method: .post, headers: [("content-type", "application/json")],
        body: #"{"token":"viewer-token-of-tests"}"#))
    let cookie = try #require(answer.headers.first { $0.name == "Set-Cookie" }?.value)
    for part in ["; HttpOnly", "; SameSite=Strict", "; Path=/", "; Max-Age=43200"] { #expect(cookie.contains(part)) }
    #expect(
      !cookie.contains("=viewer-token-of-tests;") && !rig.rig.logged.joined().contains("token=viewer-token-of-tests"))
    #expect(rig.rig.logged.contains { $0.contains("a reader signed in") && $0.contains("who=\"viewer ") })
  }

  @Test("behind TLS the cookie is one that no page of a neighbouring name can set")
  func hostCookie() async throws {
    let rig = try PageRig()
    let secure = { (method: HTTPRequest.Method, path: String, headers: [(name: String, value: String)], body: String) in
      var request = PageRig.request(path, method: method, headers: headers, body: body)
      request.isForwardedSecurely = true
      return await rig.answer(request)
    }
    let answer = await secure(
      .post, "/api/v1/session", [("content-type", "application/json")], #"{"token":"viewer-token-of-tests"}"#)
    let cookie = try #require(answer.headers.first { $0.name == "Set-Cookie" }?.value)
    #expect(cookie.hasPrefix("__Host-prism_session=") && cookie.hasSuffix("; Secure") && cookie.contains("; Path=/;"))
    let pair = String(cookie.prefix { $0 != ";" })
    #expect(await secure(.get, "/api/v1/fleet", [("cookie", pair)], "").status == 200)
    let plain = String(pair.dropFirst("__Host-".count))
    #expect(await secure(.get, "/api/v1/fleet", [("cookie", plain)], "").status == 401)
  }

  @Test("a session ends only with its change token, which no other origin can read")
  func changeToken() async throws {
    let rig = try PageRig()
    let session = try await rig.signIn("operator-token-of-tests")
    let end = { (headers: [(name: String, value: String)]) in
      await rig.answer(PageRig.request("/api/v1/session/end", method: .post, headers: headers)).status
    }
    #expect(await end([("cookie", session.cookie)]) == 403)
    #expect(await end([("cookie", session.cookie), ("x-prism-change", "wrong")]) == 403)
    let other = try await rig.signIn("operator-token-of-tests")
    #expect(await end([("cookie", session.cookie), ("x-prism-change", other.change)]) == 403)
    #expect(await end([("cookie", session.cookie), ("x-prism-change", session.change)]) == 200)
  }

  @Test("a sign-in that a form of another site could send is refused; so is what is no token")
  func signInForms() async throws {
    let rig = try PageRig()
    let post = { (type: String, body: String) in
      await rig.answer(
        PageRig.request("/api/v1/session", method: .post, headers: [("content-type", type)], body: body)
      ).status
    }
    #expect(await post("text/plain", #"{"token":"viewer-token-of-tests"}"#) == 400)
    #expect(await post("application/json", #"{"token":""}"#) == 400)
    #expect(await post("application/json", "[]") == 400)
    #expect(await post("application/json", #"{"token":"sender-token-of-tests"}"#) == 401)
    #expect(await post("application/json", #"{"token":"viewer-token-of-test"}"#) == 401)
    #expect(await post("application/json", #"{"token":"viewer-token-of-tests\n"}"#) == 401)
    #expect(await post("application/json", #"{"token":"viewer-token-of-tests"}"#) == 200)
  }

  @Test("after ten wrong tokens in a minute an address waits; another one does not")
  func guesses() async throws {
    let rig = try PageRig()
    let post = { (address: String, token: String) in
      await rig.answer(
        PageRig.request(
          "/api/v1/session", method: .post, headers: [("content-type", "application/json")],
          body: #"{"token":"\#(token)"}"#, address: address)
      ).status
    }
    for _ in 0..<10 { #expect(await post("192.0.2.1", "guess") == 401) }
    #expect(await post("192.0.2.1", "viewer-token-of-tests") == 429)
    #expect(await post("192.0.2.2", "viewer-token-of-tests") == 200)
    rig.rig.time.advance(by: .seconds(61))
    #expect(await post("192.0.2.1", "viewer-token-of-tests") == 200)
  }
}
