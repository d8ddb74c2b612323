fn main() {
    println!("f64 {:?}", wakefmm::backend::cpu::cost::m2l::<f64, 3>().iter().map(|v| (v * 1e9) as i64).collect::<Vec<_>>());
    println!("f32 {:?}", wakefmm::backend::cpu::cost::m2l::<f32, 3>().iter().map(|v| (v * 1e9) as i64).collect::<Vec<_>>());
}
