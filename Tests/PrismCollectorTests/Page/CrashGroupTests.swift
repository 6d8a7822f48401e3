import Foundation
import PrismProtocol
import Testing

@testable import PrismCollector

@Suite("Which crashes are one group")
struct CrashGroupTests {
  /// A stack in the form of one reporter, and the parts of its key.
  struct Form: CustomTestStringConvertible, Sendable {
    let testDescription: String
    let text: String
    let parts: [String]

    init(_ name: String, _ text: String, _ parts: [String]) {
      (testDescription, self.text, self.parts) = (name, text, parts)
    }
  }

  private static func key(_ text: String) -> [String] { CrashFingerprint.parts(CrashStack.frames(of: text)) }

  private static func key(list: [String]) -> [String] {
    CrashFingerprint.parts(CrashStack.frames(meta: ["frames": .array(list.map { .string($0) })], payload: nil))
  }

  private static let forms = [
    Form(
      "gdb, C++",
      """
      #0  __pthread_kill_implementation (threadid=<optimized out>, signo=signo@entry=6) at ./nptl/pthread_kill.c:44
      #1  0x00007ffff7a59fb2 in __GI_raise (sig=sig@entry=6) at ../sysdeps/posix/raise.c:26
      #2  0x00007ffff7a44472 in __GI_abort () at ./stdlib/abort.c:79
      #3  0x00005555555551b2 in (anonymous namespace)::Cart<int>::total (this=<optimized out>, n=n@entry=9) at a.cpp:6
      #4  0x00005555555551e4 in operator() (__closure=__closure@entry=0x7fffffffe578, k=k@entry=9) at a.cpp:7
      #5  0x0000555555555214 in pay<(anonymous namespace)::Cart<int> > (c=..., n=n@entry=9) at a.cpp:7
      #6  0x0000555555555252 in operator< (a=..., n=n@entry=9) at a.cpp:8
      #7  0x00005555555552dc in main (c=2) at a.cpp:9
      """, ["(anonymous)::Cart::total", "operator()", "pay", "operator<", "main"]),
    Form(
      "gdb, libraries and a handler",
      """
      #0  0x00007ffff7e0 in on_fault () at handler.c:3
      #1  <signal handler called>
      #2  0x00007ffff7a1 in json_parse (text=0x0) from /usr/lib/libjson.so.5
      #3  0x0000555555555252 in ?? () from /usr/lib/libjson.so.5
      #4  0x00005555555552dc in load.isra.0 (c=2) at a.c:9
      #5  0x00005555555552dd in main () at a.c:9
      """, ["json_parse", "load", "main", "in libjson.so.#"]),
    Form(
      "systemd-coredump",
      """
      Process 4711 (shop) of user 1000 dumped core.

      Stack trace of thread 4711:
      #0  0x000055d0c3a011c9 _ZN12_GLOBAL__N_14CartIiE5totalEi (/usr/bin/shop + 0x1f2c)
      #1  0x000055d0c3a0122a _Z3payIiEvT_i (shop + 0x222a)
      #2  0x00007f2b1c02724a __libc_start_call_main (libc.so.6 + 0x2724a)

      Stack trace of thread 4712:
      #0  0x00007f2b1c1011c9 __poll (libc.so.6 + 0x10f2c)
      #1  0x000055d0c3a0122a idle (shop + 0x322a)
      """, ["(anonymous)::Cart::total", "pay"]),
    Form(
      "backtrace_symbols",
      """
      ./shop(_ZN4shop4Cart5totalERKNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEE+0x1c) [0x55d0c3a011c9]
      ./shop(pay+0x12)[0x55d0c3a011d2]
      ./shop(main+0x82) [0x55d0c3a012dc]
      /lib/x86_64-linux-gnu/libc.so.6(__libc_start_main+0x85) [0x7fd876845305]
      ./shop(_start+0x21) [0x55cdbf0130d1]
      """, ["shop::Cart::total", "pay", "main"]),
    Form(
      "backtrace_symbols, with names of what is exported only",
      """
      ./acpp(+0x1232)[0x55cdbf013232]
      ./acpp(+0x1252)[0x55cdbf013252]
      ./acpp(main+0x82)[0x55cdbf0132dc]
      /lib/x86_64-linux-gnu/libc.so.6(+0x2724a)[0x7fd87684524a]
      """, ["acpp+0x1232", "acpp+0x1252", "main"]),
    Form(
      "kernel oops",
      """
      BUG: kernel NULL pointer dereference, address: 0000000000000008
      RIP: 0010:till_write+0x1c/0x80 [till]
      RSP: 0018:ffffc90000 EFLAGS: 00010246
      Call Trace:
       <TASK>
       ? __die+0x20/0x70
       ? exc_page_fault+0x7f/0x180
       till_flush.constprop.0+0x59/0xc0 [till]
      [   12.345678]  vfs_write+0xa1/0x3f0
       do_syscall_64+0x59/0xc0
       entry_SYSCALL_64_after_hwframe+0x6e/0xd8
       </TASK>
      """, ["till_write", "till_flush", "vfs_write", "in till"]),
    Form(
      "Swift",
      """
      *** Program crashed: Illegal instruction at 0x00007f58eb16df7f ***

      Thread 0 "shop" crashed:

        0               0x00007f58eb16df7f closure #1 in closure #1 in _assertionFailure(_:_:file:line:flags:) + 623 in libswiftCore.so
        1 [ra]          0x00007f58eb187e7d Array.subscript.getter + 124 in libswiftCore.so
        2 [ra]          0x0000565395c4c3fc Cart.total(_:) + 91 in shop at /src/shop.swift:2:53
        3 [inlined]     0x0000565395c4bb1b closure #1 in pay(_:) in shop at /src/shop.swift:3:68
        4 [ra] [thunk]  0x0000565395c4bb43 partial apply for closure #1 in pay(_:) + 18 in shop at //<compiler-generated>
        5 [ra] [system] 0x0000565395c4bf30 Collection.map<A, B>(_:) + 991 in shop at //<compiler-generated>
        6 [ra]          0x0000565395c4b917 pay(_:) + 198 in shop at /src/shop.swift:3:47
        7 [ra]          0x0000565395c4c334 main + 51 in shop at /src/shop.swift:4:1
      """, ["Cart.total", "closure in pay", "pay", "main"]),
    Form(
      "Swift, of before 5.9",
      """
      Fatal error: Index out of range: file Swift/ContiguousArrayBuffer.swift, line 444
      Current stack trace:
      0    libswiftCore.so                    0x00007f2b1c5a2e30 _swift_stdlib_reportFatalErrorInFile + 109
      1    shop                               0x000055d0c3a011c9 specialized Cart.total(_:) + 35
      2    shop                               0x000055d0c3a01252 <unavailable> + 4690
      3    shop                               0x000055d0c3a012dc pay(_:) + 12
      4    libc.so.6                          0x00007f2b1c02724a <unavailable> + 160330
      """, ["Cart.total", "pay"]),
    Form(
      "Rust",
      """
      thread 'main' (15736) panicked at a.rs:3:86:
      index out of bounds: the len is 2 but the index is 7
      stack backtrace:
         0: __rustc::rust_begin_unwind
                   at /rustc/59807616e1fa/library/std/src/panicking.rs:689:5
         1: core::panicking::panic_fmt
                   at /rustc/59807616e1fa/library/core/src/panicking.rs:80:14
         2: <usize as core::slice::index::SliceIndex<[T]>>::index
                   at /rustc/59807616e1fa/library/core/src/slice/index.rs:272:10
         3: <alloc::vec::Vec<T,A> as core::ops::index::Index<I>>::index
         4: <shop::Cart<u32> as shop::Total>::total
                   at ./src/main.rs:3:86
         5: shop::pay::{{closure}}
         6: shop::pay
                   at ./src/main.rs:4:100
         7: core::ops::function::FnOnce::call_once
      """, ["shop::Cart::total", "shop::pay::{closure}", "shop::pay"]),
    Form(
      "Rust, in full",
      """
        14:     0x5578c18fad8d - __rustc[b7974e8690430dd9]::rust_begin_unwind
                                     at /rustc/59807616e1fa/library/std/src/panicking.rs:689:5
        17:     0x5578c18e4af4 - <usize as core::slice::index::SliceIndex<[T]>>::index::h6231793fb293ed84
                                     at /rustc/59807616e1fa/library/core/src/slice/index.rs:272:10
        20:     0x5578c18e41ba - <shop::Cart<u32> as shop::Total>::total::h39e04d6da6df2420
                                     at /src/main.rs:3:86
        21:     0x5578c18e3f29 - shop::pay::{closure#0}::ha6451ba9282315a5
        22:     0x5578c18e3eaf - shop::pay::h8adaa37319afcb09
        27:     0x5578c190a214 - <&dyn core[c1f1a4ba060b9bfa]::ops::function::Fn<(), Output = i32> as core::X>::call_once
      """, ["shop::Cart::total", "shop::pay::{closure}", "shop::pay"]),
    Form(
      "Rust, mangled",
      """
      #0  0x000055d0c3a011c9 _ZN53_$LT$shop..Cart$LT$u32$GT$$u20$as$u20$shop..Total$GT$5total17h39e04d6da6df2420E (shop + 0x1f2c)
      #1  0x000055d0c3a011d9 _ZN4shop3pay17h8adaa37319afcb09E (shop + 0x1f3c)
      #2  0x000055d0c3a011e9 _RNvCs4fqI2P2rA04_4shop4main (shop + 0x1f4c)
      """, ["shop::Cart::total", "shop::pay", "shop::main"]),
    Form(
      "Go",
      """
      panic: runtime error: index out of range [5] with length 3

      goroutine 1 [running]:
      panic({0x45e0a0?, 0xc0000140a8?})
      \t/usr/local/go/src/runtime/panic.go:770 +0x132
      github.com/acme/shop.(*Cart).Total(0xc000010000, {0x4a3f20, 0x3})
      \t/src/cart.go:12 +0x1d
      main.pay[...](0xc000010000)
      \t/src/main.go:7
      main.main()
      \t/src/main.go:3 +0x25
      runtime.main()
      \t/usr/local/go/src/runtime/proc.go:271 +0x29d

      goroutine 6 [sleep]:
      time.Sleep(0x3b9aca00)
      """, ["github.com/acme/shop.(*Cart).Total", "main.pay", "main.main"]),
    Form(
      "Python",
      """
      Traceback (most recent call last):
        File "/usr/lib/python3.11/threading.py", line 975, in run
          self._target()
        File "/srv/app.py", line 7, in <module>
          main()
        File "/srv/app.py", line 5, in main
          total(3)
        File "/srv/cart.py", line 2, in total
      KeyError: 3
      """, ["total cart.py", "main app.py", "<module> app.py"]),
    Form(
      "Node",
      """
      TypeError: Cannot read properties of undefined (reading 'y')
          at Cart.total (/srv/a.js:1:36)
          at /srv/a.js:2:43
          at Array.map (<anonymous>)
          at async pay (file:///srv/a.mjs:2:22)
          at Object.<anonymous> (/srv/b.js:3:1)
          at process.processTimers (node:internal/timers:519:7)
      """, ["Cart.total a.js", "a.js", "pay a.mjs", "Object.<anonymous> b.js"]),
    Form(
      "Java",
      """
      java.lang.NullPointerException: Cannot invoke "Object.hashCode()"
      \tat com.acme.Cart.total(Cart.java:1)
      \tat com.acme.Cart.<init>(Cart.java:1)
      \tat com.acme.Shop.lambda$main$0(Shop.java:2)
      \tat java.base/java.lang.Iterable.forEach(Iterable.java:75)
      \tat com.acme.Shop.main(Shop.java:2)
      """,
      ["com.acme.Cart.total", "com.acme.Cart.<init> Cart.java", "com.acme.Shop.lambda$main$", "com.acme.Shop.main"]),
    Form(
      "libprism of before, with its memory map",
      """
      0x55d1a0001f2c
      0x55d1a0002a10
      0x7f0000000010

      55d1a0000000-55d1a0003000 r-xp 00001000 08:01 1234                       /usr/bin/shop
      7f0000000000-7f0000003000 r-xp 00001000 08:01 1234                       /usr/lib/x86_64-linux-gnu/libc.so.6
      """, ["shop+0x2f2c", "shop+0x3a10"]),
    Form(
      "a function that calls itself", "#0 walk (n=1)\n#1 walk (n=2)\n#2 walk (n=3)\n#3 main ()", ["walk", "main"]),
    Form(
      "the runtime alone", "#0 0x7f10 in raise () from /lib/libc.so.6\n#1 0x7f11 in abort ()",
      ["raise", "abort", "in libc.so.#"]),
  ]

  @Test("the key of a stack is the names of the app's functions, in the form of each reporter", arguments: forms)
  func form(form: Form) { #expect(Self.key(form.text) == form.parts) }

  @Test(
    "a name is without parameters, generics, offsets, hashes and numbers of clones",
    arguments: [
      ("pay(int)+0x1c", "pay"), ("till_loop+0x220", "till_loop"), ("pay(n=3)", "pay"), ("pay.cold", "pay"),
      ("void shop::pay<int, std::vector<int>>(int)", "shop::pay"), ("shop::Cart::total() const", "shop::Cart::total"),
      ("std::function<void (int)>::operator()(int) const", "std::function::operator()"),
      ("shop::Cart::operator->()", "shop::Cart::operator->"), ("shop::operator<<(int)", "shop::operator<<"),
      ("shop::{lambda(int)#2}::operator()(int)", "shop::{lambda}::operator()"), ("total[abi:cxx11](int)", "total"),
      ("non-virtual thunk to Cart::total()", "Cart::total"), ("shop::Cart::<u32>::total", "shop::Cart::total"),
      ("core::ptr::drop_in_place<shop::Cart>", "core::ptr::drop_in_place"), ("memcpy@plt", "memcpy"),
      ("shop::total::h0123456789abcdef", "shop::total"), ("shop::hash::h12", "shop::hash::h12"), ("pay2", "pay2"),
      ("total(Swift.Int) -> Swift.Int", "total"), ("closure #2 in Cart.total(_:)", "closure in Cart.total"),
      ("main.main.func1", "main.main.func"), ("Cart.func1", "Cart.func1"), ("_ZSt4sortIPiEvT_S1_", "std::sort"),
      ("_ZL3payi", "pay"),
      ("_ZN4CartC2ERKS_", "Cart::C2"), ("_ZN4Cart", "_ZN4Cart"), ("_Z", "_Z"), ("_ZNSa", "_ZNSa"),
      ("<module>", "<module>"), ("_RINvMCsj6gjteTz5uu_1bNtB3_4Cart5totaljEB3_", "b::Cart::total"),
      ("_RNCNvCs1_4shop3pay0", "shop::pay::{closure}"), ("_RNvXCs1_4shopNtB2_4CartNtB2_5Total3sum", "shop::Cart::sum"),
      ("_RINvCs1_4shop3payRSlKj2a_E", "shop::pay"), ("_RB_", "_RB_"), ("_RNvB_1a", "_RNvB_1a"), ("_RNvC", "_RNvC"),
      ("$s4till4TillV3payys5Int32VAFF", "till.Till.pay"), ("$s4shop0A4CartC3payyyF", "shop.shopCart.pay"),
      ("$s4shop3payyyFyycfU_", "shop.pay"), ("$sSayxSicig", "$sSayxSicig"), ("$s9shop", "$s9shop"), ("$s", "$s"),
    ])
  func name(text: String, name: String) { #expect(CrashFrame(text).function == name) }

  @Test("docs/page.md lists the frames that are left out")
  func documented() throws {
    let path = URL(filePath: #filePath).deletingLastPathComponent().appending(path: "../../../docs/page.md")
    let page = try String(contentsOf: path, encoding: .utf8)
    let table = CrashFrameTable.standard
    let block = page.components(separatedBy: "```").filter { $0.hasPrefix("text\nmodules: ") }.joined()
    let lists = block.replacing("\n  ", with: " ").split(separator: "\n").dropFirst().map {
      $0[($0.firstRange(of: ": ")?.upperBound ?? $0.endIndex)...].components(separatedBy: ", ")
    }
    #expect(lists == [table.modules, table.functions, table.files, table.signalFrames])
    #expect(page.contains("now \(CrashFrameTable.version))"))
  }

  @Test(
    "a reporter's word for an unknown name is no name", arguments: ["n/a", "??", "<unknown>", "unknown", "0x1f2c", ""])
  func noName(text: String) { #expect(CrashFrame(text).function == nil) }

  /// One bug in five builds: other offsets, addresses, lines, parameters.
  private static func builds(_ frame: (Int) -> String) -> Set<[String]> { Set((1...5).map { key(list: [frame($0)]) }) }

  @Test("one bug in five builds with names is one group, in each form that C programs have")
  func builds() {
    let keys: [Set<[String]>] = [
      Self.builds { "pay(int)+0x\($0)c" }, Self.builds { "pay+0x2\($0)8" },
      Self.builds { "./shop(pay+0x\($0)c) [0x55d0c3a0\($0)1c9]" },
      Self.builds { "#0  0x000055d0c3a0\($0)1c9 pay (shop + 0x\($0)f2c)" },
      Self.builds { "#0  0x000055d0c3a0\($0)1c9 in pay (n=\($0)) at shop.c:4\($0)" },
      Self.builds { "pay+0x\($0)c/0x8\($0) [shop]" },
      Self.builds { "pay.constprop.\($0)+0x\($0)c/0x8\($0) [shop]" },
    ]
    #expect(keys.allSatisfy { $0.count == 1 && $0.first?.first == "pay" })
  }

  /// Three frames of a bug in a program without symbols.
  private static func stripped(_ offsets: [UInt64], base: UInt64, buildID: String?) -> JSONValue {
    let frames = offsets.map { offset -> JSONValue in
      let text = String(offset, radix: 16)
      if let buildID { return ["module": "shop", "buildId": .string(buildID), "offset": .string("0x\(text)")] }
      return .string(
        "#0  0x\(String(base + offset, radix: 16)) n/a (shop + 0x\(text))".replacingNumber(offset == offsets[0] ? 0 : 1)
      )
    }
    return ["frames": .array(frames)]
  }

  @Test("three bugs of a program without symbols are three groups, at any address; a build id keeps builds apart")
  func stripped() {
    let bugs: [[UInt64]] = [[0x1f2c, 0x22a0, 0x10f4], [0x9abc, 0x8120, 0x7f00], [0x1f2c, 0x5e52, 0x60a1]]
    let key = { (bug: [UInt64], base: UInt64, buildID: String?) in
      CrashFingerprint.parts(CrashStack.frames(meta: Self.stripped(bug, base: base, buildID: buildID), payload: nil))
    }
    for buildID in [nil, "abcd", "ef01"] as [String?] {
      let keys = bugs.map { key($0, 0x55d0_c3a0_0000, buildID) }
      #expect(Set(keys).count == 3 && keys.allSatisfy { $0.count == 3 })
      #expect(bugs.map { key($0, 0x560a_b2c0_0000, buildID) } == keys)
    }
    #expect(key(bugs[0], 0, "abcd") != key(bugs[0], 0, "ef01"))
    #expect(key(bugs[0], 0, "abcd").first == "abcd+0x1f2c")
  }

  private static func fingerprint(_ text: String, _ frames: [String]) -> CrashFingerprint {
    CrashFingerprint(type: "appCrash", text: text, frames: frames.map { CrashFrame($0) })
  }

  @Test("the words of a crash count only where there is no stack")
  func words() {
    #expect(Self.fingerprint("SIGSEGV", ["pay ()"]) == Self.fingerprint("order 7 is missing", ["pay ()"]))
    #expect(Self.fingerprint("no paper", []) != Self.fingerprint("no ink", []))
    #expect(Self.fingerprint("order 7", []) == Self.fingerprint("order 8", []))
    #expect(Self.fingerprint("", ["order 7"]) != Self.fingerprint("order 7", []), "a name is no message")
  }

  @Test("crashes of two languages' reporters with other words for one stack are one group at the collector")
  func collector() async throws {
    let rig = try PageRig()
    for (number, reason) in ["SIGSEGV", "bad pointer 0x17"].enumerated() {
      let frame = "#0 0x1\(number) in pay (n=\(number)) at a.c:\(number)"
      let members = "\"reason\":\"\(reason)\",\"frames\":[\"\(frame)\"]"
      let packet = try StoreRig.packet([number], type: "appCrash", members: { _ in members })
      _ = try await rig.collector.store.take(packet)
    }
    let group = try #require(try await rig.json("/crashes", [("since", "0")])["groups"]?.array?.first)
    #expect(group["count"] == 2 && group["reason"] == "SIGSEGV")
    let detail = try await rig.json("/crashes/\(group["fingerprint"]?.string ?? "")")
    #expect(detail["key"]?.array == ["pay"] && detail["rules"]?.int == CrashFrameTable.version)
  }
}

extension String {
  /// The text with another number of the frame.
  fileprivate func replacingNumber(_ number: Int) -> String { "#\(number)" + dropFirst(2) }
}
